"""Tells an answer that a server's client cannot read from a mistake of Callslip."""

from json import JSONDecodeError

_KINDS = (JSONDecodeError, UnicodeDecodeError, AttributeError, KeyError, IndexError, TypeError)


def is_garbled(error: Exception) -> bool:
    """Whether a client raised this because the answer has another form than the server's.

    Such an answer may come from a proxy or from another program on the server's port. A client has
    no error for it and fails somewhere in its own code, which is what tells the two apart.
    """
    trace = error.__traceback__
    while trace and trace.tb_next:
        trace = trace.tb_next
    raised_in = str(trace.tb_frame.f_globals.get("__name__", "")) if trace else ""
    return isinstance(error, _KINDS) and not raised_in.startswith("callslip.")
