"""Gives free memory back to the system: glibc keeps what Python and the libraries have freed."""

import ctypes


def release() -> None:
    """Return the free pages of all heaps; does nothing with a C library that cannot do so."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
