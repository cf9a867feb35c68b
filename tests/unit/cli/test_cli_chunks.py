"""`callslip chunks` over an API in the same process."""

import json
from collections.abc import Iterator
from pathlib import Path

import click
import httpx
import pytest
from click.testing import CliRunner, Result
from pipeline_parts import paragraphs
from reader_parts import COLLECTION, Installation, installation

from callslip.cli.commands.documents import chunks as chunks_command
from callslip.cli.commands.documents import versions as versions_command
from callslip.cli.main import main
from callslip.client import Client


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    with installation(tmp_path, monkeypatch) as made:

        def connect(_: str | None) -> Client:
            transport = httpx.WSGITransport(app=made.client.application)
            return Client("http://localhost", http=httpx.Client(transport=transport))

        for module in (chunks_command, versions_command):
            monkeypatch.setattr(module, "connect", connect)
        yield made


def call(*arguments: object, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments], input=stdin)


def listed(document_id: str) -> list[dict[str, str]]:
    chunks: list[dict[str, str]] = json.loads(call("chunks", "list", document_id, "--json").output)[
        "chunks"
    ]
    return chunks


def test_chunks_are_listed_with_what_is_known_of_them(it: Installation) -> None:
    document_id = it.put("a.md", f"# Leave\n\n{paragraphs('one', 'two', 'three')} and more.")
    shown = call("chunks", "list", document_id)
    assert shown.exit_code == 0, shown.output
    assert shown.output.count("tokens  leave") == 3
    assert "(keyword, vector)" in shown.output
    whole = call("chunks", "list", document_id, "--parents", "--full")
    assert "  section  leave" in whole.output
    assert "terms: " in whole.output
    missing = call("chunks", "list", "f" * 32)
    assert missing.exit_code == 1


def test_a_chunk_is_corrected_by_the_beginning_of_its_id(
    it: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    one, two = listed(document_id)
    new = one["text"].replace("one3 ", "three ")
    made = call("chunks", "correct", document_id, one["chunk_id"][:12], "--text", new)
    assert "Version 2 has the correction" in made.output, made.output
    shown = call("chunks", "list", document_id).output
    assert "- one3\n  + three" in shown
    stdin = two["text"].replace("two3", "3")
    read = call("chunks", "correct", document_id, two["chunk_id"], "--file", "-", stdin=stdin)
    assert "Version 3" in read.output
    again = listed(document_id)[1]
    monkeypatch.setattr(click, "edit", lambda text, **_: f"{text} by hand")
    edited = call("chunks", "correct", document_id, again["chunk_id"], "--json")
    assert json.loads(edited.output)["version"] == 4
    last = listed(document_id)[1]
    monkeypatch.setattr(click, "edit", lambda text, **_: None)
    assert call("chunks", "correct", document_id, last["chunk_id"]).exit_code == 1
    same = call("chunks", "correct", document_id, last["chunk_id"], "--text", last["text"])
    assert "nothing was changed" in same.output
    assert "live, 1 correction added, 3 corrections\n" in call("versions", document_id).output


def test_a_wrong_correction_says_what_is_wrong(it: Installation) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    one, _ = listed(document_id)
    for arguments, words in (
        ((one["chunk_id"], "--text", " "), "empty"),
        (("f" * 32, "--text", "x"), "no passage"),
        (("", "--text", "x"), "2 passages have ids"),
        ((one["chunk_id"], "--text", "x", "--file", "-"), "both named"),
    ):
        refused = call("chunks", "correct", document_id, *arguments, stdin="x")
        assert refused.exit_code == 1
        assert words in refused.output


def test_corrections_that_are_left_out_are_listed(it: Installation) -> None:
    document_id = it.put("a.txt", paragraphs("one", "two"))
    one, _ = listed(document_id)
    call("chunks", "correct", document_id, one["chunk_id"], "--text", f"{one['text']} x")
    it.put("a.txt", paragraphs("three", "two"))
    shown = call("chunks", "corrections", document_id).output
    assert shown.startswith("Version 3: 1 correction, 1 left out")
    assert "left out: the file does not have the original any more" in shown
    assert "1 correction left out" in call("versions", document_id).output
    as_json = json.loads(call("chunks", "corrections", document_id, "--json").output)
    assert as_json["corrections"][0]["left_out"] == "not-found"


def test_a_preview_shows_cuts(it: Installation, tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_text(f"# Leave\n\n{paragraphs('one', 'two', 'three')}")
    lengths = ("--maxlen", 64, "--target", 60, "--overlap", 4)
    shown = call("chunks", "preview", file, "-c", COLLECTION, *lengths, "--limit", 1)
    assert shown.exit_code == 0, shown.output
    assert "2 chunks of " in shown.output
    assert "target 60, at most 64, overlap 4" in shown.output
    assert "The first 1 are shown" in shown.output
    made = json.loads(call("chunks", "preview", file, "-c", COLLECTION, "--json").output)
    assert made["count"] == 3
    assert it.ledger.documents.find(COLLECTION) == []
