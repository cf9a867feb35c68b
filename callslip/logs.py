"""The log of a process: one line per event, as text or JSON, without text of documents.

`event` writes a line with named fields. Of an exception the log has the type and the code lines of
the traceback, never the message, because messages may repeat text of a document or a question.
docs/observability.md documents every event and field.
"""

import json
import logging
import os
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from callslip import trace_context

Format = Literal["text", "json"]

_Exception = tuple[type[BaseException], BaseException, TracebackType | None]

_FIELDS = "callslip_fields"
"""The attribute of a log record that has the fields of an event."""

CHATTY = (
    *("httpx", "openai", "celery.beat", "celery.pool"),
    *("celery.worker.strategy", "celery.worker.consumer"),
)
"""Loggers whose INFO lines repeat what the events say, or name addresses.

Their DEBUG lines have the arguments of tasks, or the prompts of a language model.
"""

UNREADABLE = "celery.worker.consumer.consumer"
"""The logger that writes the body and the headers of a message that the worker cannot read."""

MUTE = ("celery.app.trace",)
"""Loggers that write the messages of exceptions; the event `task` replaces them."""


def event(
    logger: logging.Logger,
    name: str,
    level: int = logging.INFO,
    error: BaseException | None = None,
    **fields: Any,
) -> None:
    """Write one line for an event, with the traceback of `error`. Omits fields that are None.

    Fields are ids, numbers, names of errors and short names; never text of a document, a question
    or an answer.
    """
    if logger.isEnabledFor(level):
        known = {key: value for key, value in fields.items() if value is not None}
        logger.log(level, name, extra={_FIELDS: known}, exc_info=error)


def milliseconds(seconds: float) -> float:
    """A duration as the log has it."""
    return round(1000 * seconds, 1)


class _Formatter(logging.Formatter):
    def formatException(self, ei: Any) -> str:  # noqa: N802 - of the standard library
        """The code lines and the type of an exception, without its message."""
        exception: _Exception = ei
        lines = traceback.format_list(traceback.extract_tb(exception[2]))
        return "".join(lines) + exception[0].__name__

    def formatTime(  # noqa: N802 - of the standard library
        self, record: logging.LogRecord, datefmt: str | None = None
    ) -> str:
        """The time in UTC, with milliseconds."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        return f"{moment}.{int(record.msecs):03}Z"

    def values(self, record: logging.LogRecord) -> dict[str, Any]:
        """The fields of an event, or the message of another record, and the trace id."""
        fields: Mapping[str, Any] | None = getattr(record, _FIELDS, None)
        message = record.getMessage()
        values = {"message": message} if fields is None else {"event": message, **fields}
        if trace_id := trace_context.trace_id():
            values["w3c_trace_id"] = trace_id
        if record.exc_info and record.exc_info[0] is not None:
            values["traceback"] = self.formatException(record.exc_info)
        return values


class JsonFormatter(_Formatter):
    """One JSON object per line."""

    def __init__(self, part: str) -> None:
        super().__init__()
        self._always = {"part": part, "host": socket.gethostname()}

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        head = {
            "at": self.formatTime(record),
            "level": record.levelname,
            **self._always,
            "pid": record.process,
            "logger": record.name,
        }
        return json.dumps(head | self.values(record), ensure_ascii=False, default=str)


class TextFormatter(_Formatter):
    """Time, level, logger, the event or message, and the fields as `name=value`."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line; a traceback follows on lines of its own."""
        values = self.values(record)
        trace = values.pop("traceback", None)
        words = [self.formatTime(record), record.levelname, record.name]
        words.append(str(values.pop("event", None) or values.pop("message")))
        words += [f"{key}={word(value)}" for key, value in values.items()]
        return " ".join(words) + (f"\n{trace}" if trace else "")


class Output(logging.StreamHandler[Any]):
    """Writes lines to standard error, or to a file that another process may rename.

    Standard output and error of the process are the file too. Before each line the handler looks
    whether the file still has its name, and else opens it again: so all processes of a part write
    to one file that the supervisor rotates, and no line is lost.
    """

    def __init__(self, file: Path | None) -> None:
        super().__init__(sys.stderr)
        self._file = file
        self._opened: tuple[int, int] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        if self._file is not None:
            self._open(self._file)
        super().emit(record)

    def _open(self, file: Path) -> None:
        try:
            status = os.stat(file)  # noqa: PTH116 - it takes a third of the time of Path.stat
            if (status.st_dev, status.st_ino) == self._opened:
                return
        except OSError:
            pass  # it was renamed, or its folder is new
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError:
            return  # go on with the file that is open
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        os.close(descriptor)
        status = os.fstat(2)
        self._opened = status.st_dev, status.st_ino


def set_up(part: str, level: str, form: Format, file: Path | None = None) -> None:
    """Send the records of every logger of this process, of libraries too, to one output."""
    output = Output(file)
    output.setFormatter(JsonFormatter(part) if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [output]
    root.setLevel(level)
    for name in (*logging.root.manager.loggerDict,):
        known = logging.getLogger(name)
        if known.handlers:
            known.handlers.clear()
            known.propagate = True
    for name in CHATTY:
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))
    for name in MUTE:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    logging.getLogger(UNREADABLE).addFilter(_without_body)
    logging.captureWarnings(capture=True)


def _without_body(record: logging.LogRecord) -> bool:
    """Leave of a line about a message's body only what comes before the first value.

    The name of a task that the worker does not know stays.
    """
    template = str(record.msg)
    if "body" in template:
        first, values = template.partition("\n")[0], record.args
        if "unregistered task" in first and isinstance(values, tuple):
            record.msg, record.args = first, values[:1]
        else:
            record.msg, record.args = first.partition("%")[0].strip(" :"), ()
    return True


def word(value: Any) -> str:
    """The value as one word of a line: in quotes, with escapes, if it is none by itself."""
    text = str(value)
    if text and text.isprintable() and not set(text) & set(' "='):
        return text
    return json.dumps(text, ensure_ascii=not text.isprintable())
