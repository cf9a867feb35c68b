"""Progress belongs to a terminal, and a message begins on a line of its own."""

import io
import re
import sys

import click
import pytest

from callslip.cli.commands.collections import transfer
from callslip.cli.shared.installation import counter


class Terminal(io.StringIO):
    """A standard error that a person sees."""

    def isatty(self) -> bool:
        return True


STREAMS = pytest.mark.parametrize("make", [io.StringIO, Terminal], ids=["file", "terminal"])


def lines(stream: io.StringIO) -> list[str]:
    """The lines that a person sees; in a file nothing overwrites another text."""
    text = click.unstyle(stream.getvalue().replace("\r\x1b[K", "\r"))
    assert stream.isatty() or "\r" not in text
    return [re.sub(r".*\r", "", line).rstrip() for line in text.split("\n")]


@STREAMS
@pytest.mark.parametrize("json_out", [True, False])
def test_the_count_of_a_backup_is_for_a_terminal(
    make: type[io.StringIO], json_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = make()
    monkeypatch.setattr(sys, "stderr", stream)
    with counter(json_out) as progress:
        progress("ledger", 5)
        assert lines(stream) == ["ledger: 5" if stream.isatty() and not json_out else ""]
    assert lines(stream) == [""]


@STREAMS
def test_each_message_of_a_reindex_is_a_line(
    make: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = make()
    monkeypatch.setattr(sys, "stderr", stream)
    with transfer._bar("Reindexing", json_out=False) as progress:
        progress(2, 9)
        transfer._say("Comparing both stores")
        transfer._say("Switched")
    shown = lines(stream)
    assert [line for line in shown if " …" in line] == ["Comparing both stores …", "Switched …"]
    assert shown[-1] == ""
