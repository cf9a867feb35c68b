"""`callslip memory`: files that cannot be read or written are errors in one sentence."""

from contextlib import nullcontext
from pathlib import Path

import pytest
from click.testing import CliRunner

from callslip.cli.commands.collections import memory
from callslip.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["import", "{0}/a.bin"], "{0}/a.bin is not UTF-8"),
        (["export", "/proc/x"], "/proc/x cannot be written: No such file or directory"),
        (["export", ""], ". cannot be written: Is a directory"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], words: str
) -> None:
    (tmp_path / "a.bin").write_bytes(b"\xff\xfe\x00")
    monkeypatch.setattr(memory, "connect", lambda _: nullcontext(object()))
    given = [each.format(tmp_path) for each in arguments]
    shown = CliRunner().invoke(main, ["memory", *given, "-c", "ko"])
    assert shown.exit_code == 1
    assert f"Error: {words.format(tmp_path)}\n" in shown.output
