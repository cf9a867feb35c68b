"""The Python client beside a desk that is broken or means harm: it ends, by an error of its own."""

import json
from collections.abc import Iterator

import httpx
import pytest
from client_parts import NODE, desk, stream

from callslip.client import lines
from callslip.client.lines import LineReader
from callslip.errors import PermanentError

ODD = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg"
"""Where str.splitlines ends lines, and nothing else does."""


def read(data: bytes, size: int) -> list[str]:
    reader = LineReader()
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    return [line for part in [*parts, b""] for line in reader.read(part)] + list(reader.rest())


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_lines_end_at_the_ends_of_lines_alone(size: int) -> None:
    text = f"\ufeff{ODD}\n\r\n\n한\r\ndata: é\r\r\ufefflast \u2028"
    expected = [ODD, "", "", "한", "data: é", "", "\ufefflast \u2028"]
    assert read(text.encode(), size) == expected
    assert read(b"\xff\n", size) == ["\ufffd"]
    assert read(b"", size) == []


def test_a_line_ends_with_its_return_and_is_not_waited_for() -> None:
    reader = LineReader()
    assert list(reader.read(b"a\r")) == ["a"]
    assert list(reader.read(b"\nb\n")) == ["b"]


def test_streams_hold_every_character() -> None:
    node = json.dumps(json.loads(NODE) | {"facts": {"said": ODD}}, ensure_ascii=False)
    node = node.replace("\\u000b", "\x0b").replace("\\f", "\x0c")
    client, _ = desk(stream(f"event: node\ndata: {node}\n\n"))
    assert "\u2028" in next(client.request_events("GET", "/v1/events")).data
    client, _ = desk(httpx.Response(200, content=f'{{"a": "{ODD}"}}\n{{}}'.encode()))
    assert list(client.request_lines("/v1/lines")) == [f'{{"a": "{ODD}"}}', "{}"]


def test_a_line_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "LARGEST_LINE", 1000)

    def endless(_: httpx.Request) -> httpx.Response:
        def parts() -> Iterator[bytes]:
            while True:
                yield b"x" * 100

        return httpx.Response(200, content=parts())

    client, asked = desk(endless)
    with pytest.raises(PermanentError, match="longer than 1000 bytes"):
        list(client.request_lines("/v1/lines"))
    with pytest.raises(PermanentError, match="longer than 1000 bytes"):
        list(client.request_events("GET", "/v1/events"))
    assert len(asked) == 2
