"""Passages and documents are counted by the values of a property, as far as a caller may read."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from reader_parts import COLLECTION, At, Installation, installation

URL = f"/v1/collections/{COLLECTION}/counts"

LONG = " ".join(f"Paragraph {n} of the canteen says what the cook has made." for n in range(40))


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    with installation(tmp_path, monkeypatch) as made:
        yield made


def counted(at: At, by: str, **body: Any) -> dict[str, Any]:
    response = at.call("POST", URL, json={"by": by} | body)
    assert response.status_code == 200, response.text
    return dict(response.json)


def test_documents_and_their_passages_are_counted_apart(it: Installation) -> None:
    for name, text, kind in (("a", LONG, "law"), ("b", "Short.", "law"), ("c", "Brief.", "faq")):
        it.put(f"{name}.txt", text, properties=json.dumps({"kind": kind, "tags": ["x", kind]}))
    it.put("plain.txt", "Nothing is known of it.")
    found = counted(it.anyone, "kind")
    law, faq = found["values"]
    assert (law["value"], law["documents"], faq) == (
        "law",
        2,
        {"value": "faq", "chunks": 1, "documents": 1},
    )
    assert law["chunks"] > 2
    assert (found["distinct"], found["documents"]) == (2, 4)
    assert found["chunks"] == law["chunks"] + 2
    assert [v["documents"] for v in counted(it.anyone, "tags")["values"]] == [3, 2, 1]
    only = counted(it.anyone, "kind", having_all={"kind": "faq"})
    assert [only[what] for what in ("distinct", "chunks", "documents")] == [1, 1, 1]
    first = counted(it.anyone, "kind", limit=1)
    assert [v["value"] for v in first["values"]] == ["law"]
    assert first["distinct"] == 2


def test_what_a_caller_may_not_read_is_not_counted(it: Installation) -> None:
    it.put("open.txt", "The canteen opens.", properties='{"kind": "menu"}')
    it.put("board.txt", "The merger.", properties='{"kind": "secret"}', readers="group:board")
    board = counted(it.as_reader("group:board"), "kind")
    assert [v["value"] for v in board["values"]] == ["menu", "secret"]
    bob = counted(it.as_reader("user:bob"), "kind")
    assert bob["values"] == [{"value": "menu", "chunks": 1, "documents": 1}]
    assert (bob["chunks"], bob["documents"], bob["distinct"]) == (1, 1, 1)


def test_an_unknown_property_and_the_servers_own_are_refused_by_name(it: Installation) -> None:
    it.put("open.txt", "The canteen opens.", properties='{"kind": "menu"}')
    for by, hint in (("kynd", "kind"), ("callslip:audience", "")):
        response = it.anyone.call("POST", URL, json={"by": by})
        problem = response.json
        assert (response.status_code, problem["type"].rpartition(":")[2]) != (200, "")
        assert by in problem["detail"]
        assert hint in problem["advice"]
    assert it.anyone.call("POST", URL, json={}).status_code == 400
