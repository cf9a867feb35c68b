"""The lines of the log: their fields, what they never have, and rotation by another process."""

import json
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from celery.worker.consumer import consumer
from kombu.exceptions import DecodeError
from pydantic import ValidationError

from callslip import logs, trace_context
from callslip.config.sections.servers import LogSettings
from callslip.workers.supervision import child
from callslip.workers.supervision.child import Child, Part

WRITER = """
import logging, sys, pathlib
from callslip import logs
logs.set_up("ingest", "INFO", "json", pathlib.Path(sys.argv[1]))
for number in range(2000):
    logs.event(logging.getLogger("writer"), "step", writer=sys.argv[2], number=number)
"""


def record(error: BaseException | None = None, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("callslip.x", logging.INFO, "", 0, "step", (), None)
    if error is not None:
        made.exc_info = (type(error), error, error.__traceback__)
    made.callslip_fields = fields
    return made


def test_a_line_has_its_fields_and_the_trace_but_no_message_of_an_exception() -> None:
    message = "text of a document"
    try:
        raise ValueError(message)
    except ValueError as error:
        made = record(error, step="chunk", title="two words")
    traceparent = trace_context.new()
    with trace_context.within(traceparent):
        parsed = json.loads(logs.JsonFormatter("ingest").format(made))
        text = logs.TextFormatter().format(made)
    assert (parsed["event"], parsed["step"], parsed["part"]) == ("step", "chunk", "ingest")
    assert parsed["w3c_trace_id"] == traceparent[3:35]
    assert parsed["traceback"].endswith("ValueError")
    assert 'INFO callslip.x step step=chunk title="two words" w3c_trace_id=' in text
    assert message not in text + str(parsed)


def test_no_text_of_a_field_acts_on_a_terminal_or_makes_a_line() -> None:
    for text in ("\x1b[2J", "a\rb", "\u202ea", "a\u2028b", "a\nb"):
        assert logs.TextFormatter().format(record(name=text)).isprintable()


def test_a_message_that_cannot_be_read_is_logged_without_its_body() -> None:
    said = []
    for template, values in (
        (consumer.MESSAGE_DECODE_ERROR, (DecodeError(), "json", "utf-8", "argsrepr", "a question")),
        (consumer.UNKNOWN_FORMAT, ("a question",)),
        (consumer.UNKNOWN_TASK_ERROR, (KeyError("ingest.older"), "a question", "argsrepr", {})),
        (consumer.INVALID_TASK_ERROR, (DecodeError(), "a question")),
        ("Too many open files.", ()),
    ):
        made = logging.LogRecord(logs.UNREADABLE, logging.CRITICAL, "", 0, template, values, None)
        assert logs._without_body(made)
        said.append(made.getMessage())
    assert said == [
        "Can't decode message body",
        "Received and deleted unknown message.  Wrong destination?!?",
        "Received unregistered task of type 'ingest.older'.",
        "Received invalid task message",
        "Too many open files.",
    ]
    assert consumer.logger.name == logs.UNREADABLE


def test_only_a_valid_traceparent_is_accepted() -> None:
    assert trace_context.valid(trace_context.new())
    zero = f"00-{'0' * 32}-{'1' * 16}-01"
    for header in (None, "", "x", zero, trace_context.new() + "\n", trace_context.new().upper()):
        assert trace_context.valid(header) is None


def test_several_processes_lose_no_line_while_the_log_is_rotated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "LOG_BYTES", 20_000)
    monkeypatch.setattr(child, "OLD_LOGS", 60)
    log = tmp_path / "ingest.log"
    part = Child(Part("ingest", (), {}, reopens_log=True), log)
    writers = [
        subprocess.Popen((sys.executable, "-c", WRITER, str(log), name)) for name in ("a", "b")
    ]
    while any(writer.poll() is None for writer in writers):
        part.bound_log()
    files = list(tmp_path.iterdir())
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert len(files) > 3
    assert sorted((line["writer"], line["number"]) for line in lines) == [
        (name, number) for name in "ab" for number in range(2000)
    ]


def test_a_part_may_have_a_level_of_its_own() -> None:
    settings = LogSettings(level="ERROR", levels="api=DEBUG, valkey=WARNING")
    assert [settings.level_of(p) for p in ("api", "valkey", "search")] == [
        *("DEBUG", "WARNING", "ERROR")
    ]
    assert settings.level_of("chroma") == "WARNING"
    with pytest.raises(ValidationError, match="apis=DEBUG is no PART=LEVEL"):
        LogSettings(levels="apis=DEBUG")
