"""`callslip options` names the options where one is not known."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from callslip.cli.commands.collections import options
from callslip.cli.main import main
from callslip.errors import InvalidRequest


@pytest.mark.parametrize(("text", "listed"), [("foo: bar", True), ("analyzer: x", False)])
def test_an_unknown_option_is_answered_by_those_that_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, *, listed: bool
) -> None:
    class Client:
        def set_options(self, *_: Any) -> None:
            raise InvalidRequest("it is refused", hint="as the server says")

    monkeypatch.setattr(options, "connect", lambda _: nullcontext(Client()))
    (tmp_path / "o.yaml").write_text(text)
    shown = CliRunner().invoke(main, ["options", "ko", str(tmp_path / "o.yaml")])
    assert shown.exit_code == 1
    assert "Error: it is refused\n" in shown.output
    assert ("The options are entities, dictionary, rules," in shown.output) == listed
    assert ("as the server says" in shown.output) != listed


@pytest.mark.parametrize("command", ["search", "ask"])
def test_a_day_that_is_none_is_named_with_its_option(command: str) -> None:
    for day in ("2026-13-01", "yesterday", "2026"):
        shown = CliRunner().invoke(main, [command, "leave", "--as-of", day])
        assert shown.exit_code == 2
        assert "Invalid value for '--as-of'" in shown.output
        assert repr(day) in shown.output
