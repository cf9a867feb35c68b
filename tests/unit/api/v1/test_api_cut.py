"""A document is cut with other lengths: shown first, then a version that later versions follow."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from click.testing import CliRunner
from reader_parts import COLLECTION, Installation, installation
from werkzeug.test import TestResponse

from callslip.cli.commands.documents import steps as step_commands
from callslip.cli.commands.documents import versions as version_commands
from callslip.cli.main import main
from callslip.client import Client
from callslip.ingestion import provided_chunks
from callslip.ingestion.artifacts import CHUNKS
from callslip.ingestion.provided_chunks import ChunkScope
from callslip.stores.records import ChunkRecord

SENTENCES = [f"Paragraph {n} of the canteen says what the cook has made today." for n in range(60)]
LONG = "\n\n".join(SENTENCES)


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    with installation(tmp_path, monkeypatch) as made:
        yield made


def tokens(it: Installation, document_id: str) -> list[int]:
    """The lengths of the live version's passages."""
    live = it.ledger.documents.get(document_id).live_version
    assert live is not None
    name = it.ledger.documents.artifact(document_id, live, "chunk")
    assert name is not None
    return [c.tokens for c in CHUNKS.load(it.context.blobs.read(document_id, name))]


def test_a_preview_shows_the_chunks_and_a_cut_makes_them(it: Installation) -> None:
    document_id = it.put("canteen.txt", LONG)
    usual, url = tokens(it, document_id), f"/v1/documents/{document_id}/cut"
    shown = it.anyone.call("POST", f"{url}:preview", json={"max_tokens": 48, "limit": 2}).json
    assert shown["now"] == {
        "chunks": len(usual),
        "tokens": sum(usual),
        "longest": max(usual),
    }
    assert (shown["target_tokens"], shown["max_tokens"]) == (43, 48)
    assert shown["then"]["longest"] <= 48
    assert len(shown["chunks"]) == 2
    assert it.ledger.documents.get(document_id).newest.version == 1
    made = it.anyone.call("POST", url, json={"max_tokens": 48})
    assert (made.status_code, made.json["version"]) == (202, 2)
    cut = tokens(it, document_id)
    assert (len(cut), max(cut)) == (shown["then"]["chunks"], shown["then"]["longest"])
    assert cut != usual
    stored = it.context.store_of("").count("papers")
    assert stored >= len(cut)
    again = it.anyone.call("POST", url, json={"max_tokens": 48})
    assert (again.status_code, again.json["outcome"]) == (200, "unchanged")


def lengths_of(body: dict[str, Any]) -> tuple[int, int, int]:
    return body["target_tokens"], body["max_tokens"], body["overlap_tokens"]


def replies(it: Installation, document_id: str, lengths: dict[str, int]) -> list[TestResponse]:
    """Of a preview of the document's text, of one of the document, and of the cut itself."""
    text = {"text": LONG, "name": "canteen.txt"}
    url = f"/v1/documents/{document_id}/cut"
    return [
        it.anyone.call("POST", f"/v1/collections/{COLLECTION}/chunks:preview", json=text | lengths),
        it.anyone.call("POST", f"{url}:preview", json=lengths),
        it.anyone.call("POST", url, json=lengths),
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("lengths", "completed"),
    [
        ({"max_tokens": 48}, (43, 48, 0)),
        ({"max_tokens": 900, "overlap_tokens": 30}, (54, 60, 30)),
        ({"overlap_tokens": 8}, (32, 32, 8)),
        ({"overlap_tokens": 0}, (32, 32, 0)),
    ],
)
def test_previews_of_a_text_and_of_a_document_show_what_the_cut_makes(
    it: Installation,
    monkeypatch: pytest.MonkeyPatch,
    lengths: dict[str, int],
    completed: tuple[int, int, int],
) -> None:
    monkeypatch.setattr(type(it.context.steps.embedder), "max_tokens", 60)
    document_id = it.put("canteen.txt", LONG)
    of_text, of_document, _ = (each.json for each in replies(it, document_id, lengths))
    assert lengths_of(of_text) == lengths_of(of_document) == completed
    live = it.anyone.call("GET", f"/v1/documents/{document_id}/chunks").json["chunks"]
    spans = [(each["span"]["start"], each["span"]["end"], each["tokens"]) for each in live]
    assert [(*each["span"].values(), each["tokens"]) for each in of_text["chunks"]] == spans
    assert [(c["start"], c["end"], c["tokens"]) for c in of_document["chunks"]] == spans


@pytest.mark.parametrize(
    ("lengths", "detail"),
    [
        ({"overlap_tokens": 32}, "overlap_tokens is 32, but must be from 0 to 31"),
        (
            {"max_tokens": 40, "overlap_tokens": 36},
            "overlap_tokens is 36, but must be from 0 to 35",
        ),
    ],
)
def test_previews_and_the_cut_refuse_an_impossible_length_and_name_its_bounds(
    it: Installation, lengths: dict[str, int], detail: str
) -> None:
    refused = replies(it, it.put("canteen.txt", LONG), lengths)
    assert [(each.status_code, each.json["detail"]) for each in refused] == [(400, detail)] * 3


def test_the_lengths_of_a_version_make_its_own_chunks(it: Installation) -> None:
    it.put("canteen.txt", LONG)
    document_id = it.put("canteen.txt", f"{'new ' * 20}\n\n{LONG}")
    url = f"/v1/documents/{document_id}/cut"
    shown = it.anyone.call("POST", f"{url}:preview", json={"overlap_tokens": 0}).json
    assert shown["now"] == shown["then"]
    assert shown["unchanged"] == shown["now"]["chunks"]
    assert it.anyone.call("POST", url, json={"overlap_tokens": 0}).json["outcome"] == "unchanged"


def test_later_versions_keep_the_lengths_and_a_rollback_brings_the_former_back(
    it: Installation,
) -> None:
    document_id = it.put("canteen.txt", LONG)
    usual = tokens(it, document_id)
    url = f"/v1/documents/{document_id}"
    it.anyone.call("POST", f"{url}/cut", json={"max_tokens": 48, "overlap_tokens": 5})
    cut = tokens(it, document_id)
    it.put("canteen.txt", LONG + "\n\nOne more paragraph is about the menu.")
    assert it.ledger.documents.get(document_id).live_version == 3
    assert max(tokens(it, document_id)) <= 48
    assert tokens(it, document_id)[: len(cut) - 2] == cut[:-2]
    back = it.anyone.call("POST", f"{url}/rollback", json={"version": 1})
    assert back.status_code == 202
    assert tokens(it, document_id) == usual


def test_no_chunk_is_longer_than_the_embedder_reads(
    it: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    document_id = it.put("canteen.txt", LONG)
    monkeypatch.setattr(type(it.context.steps.embedder), "max_tokens", 60)
    url = f"/v1/documents/{document_id}/cut:preview"
    shown = it.anyone.call("POST", url, json={"max_tokens": 900, "overlap_tokens": 8}).json
    assert (shown["max_tokens"], shown["overlap_tokens"]) == (60, 8)
    assert shown["then"]["longest"] <= 60


def test_lengths_that_contradict_each_other_and_other_documents_are_refused(
    it: Installation,
) -> None:
    document_id = it.put("canteen.txt", LONG, readers="group:board")
    url = f"/v1/documents/{document_id}/cut"
    wrong = it.anyone.call("POST", url, json={"max_tokens": 40, "overlap_tokens": 39})
    assert wrong.status_code == 400
    assert "39" in wrong.json["detail"]
    assert it.anyone.call("POST", url, json={"max_tokens": 3}).status_code == 400
    for path in (url, f"{url}:preview"):
        bob = it.as_reader("user:bob").call("POST", path, json={"max_tokens": 48})
        assert bob.status_code == 404
        unknown = f"/v1/documents/{'0' * 32}{path[path.index('/cut') :]}"
        assert it.anyone.call("POST", unknown, json={"max_tokens": 48}).status_code == 404
    assert it.ledger.documents.get(document_id).newest.version == 1
    it.anyone.call("DELETE", f"/v1/documents/{document_id}")
    assert it.anyone.call("POST", url, json={"max_tokens": 48}).status_code == 404


def test_the_history_says_how_each_version_was_made(it: Installation) -> None:
    document_id = it.put("canteen.txt", LONG)
    url = f"/v1/documents/{document_id}"
    it.anyone.call("POST", f"{url}/cut", json={"max_tokens": 48, "overlap_tokens": 5})
    first = it.anyone.call("GET", f"{url}/chunks").json["chunks"][0]
    texts = {first["chunk_id"]: first["text"].replace("Paragraph 0 ", "Line 0 ")}
    it.anyone.call("POST", f"{url}/corrections", json={"texts": texts})
    it.anyone.call("PATCH", url, json={"title": "Canteen"})
    it.anyone.call("POST", f"{url}/rollback", json={"version": 1})
    history = it.anyone.call("GET", f"{url}/versions").json["versions"]
    assert [(v["version"], v["origin"], v["corrections_added"]) for v in history] == [
        (5, "restored", None),
        (4, "edited", None),
        (3, "corrected", 1),
        (2, "cut", None),
        (1, "submitted", None),
    ]
    lengths = {"target_tokens": 43, "max_tokens": 48, "overlap_tokens": 5}
    assert [v["chunking"] for v in history] == [None, lengths, lengths, lengths, None]
    page = it.anyone.call("GET", f"/page/documents/{document_id}").text
    for words in (
        "<b>Version 5</b>, live: as version 1",
        "<b>Version 4</b>, superseded: edited title",
        "<b>Version 3</b>, superseded: 1 correction added\n",
        "<b>Version 2</b>, superseded: cut into chunks of at most 48 tokens that share 5",
        "<b>Version 1</b>, superseded: submitted",
    ):
        assert words in page


def test_the_command_prints_and_applies(it: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    document_id = it.put("canteen.txt", LONG)

    def connect(_: str | None) -> Client:
        served = httpx.Client(transport=httpx.WSGITransport(it.client.application))
        return Client("http://127.0.0.1", http=served)

    for module in (step_commands, version_commands):
        monkeypatch.setattr(module, "connect", connect)

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(main, ["ingest", "chunk", "--doc-id", document_id, *arguments])

    shown = run("--maxlen", "48", "--overlap", "5")
    assert shown.exit_code == 0, shown.output
    assert "Nothing was changed" in shown.output
    assert it.ledger.documents.get(document_id).newest.version == 1
    applied = run("--maxlen", "48", "--overlap", "5", "--apply", "--json")
    assert applied.exit_code == 0, applied.output
    report = json.loads(applied.output)
    assert (report["version"], report["outcome"], report["step"]) == (2, "accepted", "chunk")
    assert report["counts"]["chunks"] == len(tokens(it, document_id))
    history = CliRunner().invoke(main, ["versions", document_id]).output
    assert "live, cut into chunks of at most 48 tokens that share 5\n" in history
    assert "superseded, submitted, by version 2\n" in history
    assert run("--apply").exit_code == 2
    assert run().exit_code == 0


def test_a_document_without_a_file_is_a_conflict_as_for_an_edit(it: Installation) -> None:
    vector = np.full(16, 0.25, np.float32)
    provided = ChunkRecord("1", "", "text", "text", vector, level=1)
    kind = it.ledger.collections.get(COLLECTION).store
    provided_chunks.put(ChunkScope(it.context.backend, kind, COLLECTION), "faq", [provided], 9)
    url = f"/v1/documents/{it.ledger.documents.id_of(COLLECTION, 'faq')}"
    edit = it.anyone.call("PATCH", url, json={"title": "x"})
    assert edit.status_code == 409
    for name in ("cut", "cut:preview"):
        cut = it.anyone.call("POST", f"{url}/{name}", json={"max_tokens": 48})
        assert (cut.status_code, cut.json["detail"]) == (409, edit.json["detail"])
