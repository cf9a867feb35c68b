"""What `callslip search` prints of a hit."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from callslip.cli.commands.search import search


@pytest.mark.parametrize(
    ("text", "shown"),
    [("word\n\n" * 60, "word " * 59 + "word"), ("word\n\n" * 61, "word " * 59 + "word…")],
)
def test_a_passage_that_is_shown_in_part_ends_with_an_ellipsis(
    text: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hit = {"rank": 1, "score": 1.0, "title": "T", "heading": "", "text": text}
    response: dict[str, Any] = {
        **{"left_out": {}, "hotset": False, "as_of": {"at": None}},
        "hits": [{**hit, "legs": {}, "reasons": None}],
    }
    client = SimpleNamespace(search=lambda **_: response)
    monkeypatch.setattr(search, "connect", lambda _: nullcontext(client))
    monkeypatch.setattr(search, "plain", lambda message: message)

    printed = CliRunner().invoke(search.search_command, ["word"]).output

    assert printed.splitlines()[1] == f"   {shown}"
