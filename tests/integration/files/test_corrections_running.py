"""Chunks over HTTP with workers, a real Chroma and the child process that reads files."""

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from processes import waits_until
from stack import Stack


@pytest.fixture(scope="module")
def http(lexical_stack: Stack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=lexical_stack.url, timeout=60, trust_env=False) as client:
        yield client


def paragraphs(*words: str) -> str:
    """A text in which each word has paragraphs that fill a chunk."""
    return "\n\n".join(
        f"# About {word}\n\n"
        + "\n\n".join(
            " ".join(f"The {word} number {n * 20 + at} is in the list." for at in range(20))
            for n in range(2)
        )
        for word in words
    )


def test_a_chunk_is_previewed_stored_corrected_and_brought_back(http: httpx.Client) -> None:
    name = f"papers-{uuid.uuid4().hex[:8]}"
    http.post("/v1/collections", json={"name": name}).raise_for_status()
    text = paragraphs("harbour", "winter", "archive")
    preview = http.post(f"/v1/collections/{name}/chunks:preview", json={"text": text}).json()
    sent = http.post(
        f"/v1/collections/{name}/documents", json={"text": text, "name": "book.md"}
    ).json()
    document_id = sent["document_id"]
    url = f"/v1/documents/{document_id}"

    def live(version: int) -> None:
        assert waits_until(lambda: bool(http.get(url).json()["live_version"] == version), 120)

    live(1)
    before = http.get(f"{url}/chunks").json()["chunks"]
    assert [c["text"] for c in before] == [c["text"] for c in preview["chunks"]]
    assert all(c["stores"] == {"chroma": ["keyword", "vector"]} for c in before)
    chunk = next(c for c in before if "winter number 3 " in c["text"])
    new = chunk["text"].replace("winter number 3 ", "snowstorm number 3 ")
    texts = {"texts": {chunk["chunk_id"]: new}, "version": 1}
    assert http.post(f"{url}/corrections", json=texts).status_code == 202
    live(2)
    after = http.get(f"{url}/chunks").json()["chunks"]
    changed = [
        (old, now)
        for old, now in zip(before, after, strict=True)
        if old["chunk_id"] != now["chunk_id"]
    ]
    assert [(old["text"], now["text"]) for old, now in changed] == [(chunk["text"], new)]
    versions: list[dict[str, Any]] = http.get(f"{url}/versions").json()["versions"]
    assert versions[0]["counts"]["extract"]["corrections"] == 1
    assert versions[0]["counts"]["upsert"]["chunks"] == len(before)
    query = {"collection": name, "query": "the snowstorm"}
    hit = http.post("/v1/search", json=query).json()["hits"][0]
    assert hit["text"] == new
    assert http.get(f"{url}/text", params=hit["span"]).json()["text"] == new
    assert http.post(f"{url}/rollback", json={"version": 1}).status_code == 202
    live(3)
    assert [c["chunk_id"] for c in http.get(f"{url}/chunks").json()["chunks"]] == [
        c["chunk_id"] for c in before
    ]


def test_a_preview_reads_files_in_the_child_process(http: httpx.Client, tmp_path: Path) -> None:
    name = f"papers-{uuid.uuid4().hex[:8]}"
    http.post("/v1/collections", json={"name": name}).raise_for_status()
    url = f"/v1/collections/{name}/chunks:preview"
    refused = http.post(url, files={"file": ("a.pdf", b"%PDF-1.7 nothing")})
    assert (refused.status_code, "broken-file" in refused.text) == (422, True)
    made = http.post(url, files={"file": ("a.html", b"<h1>Leave</h1><p>Thirty days.</p>")})
    assert made.json()["media_type"] == "text/html"
    assert made.json()["chunks"][0]["text"].endswith("Thirty days.")
    assert http.get(f"/v1/collections/{name}/documents").json()["documents"] == []
