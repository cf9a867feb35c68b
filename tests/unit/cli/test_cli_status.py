"""What `callslip status` prints."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from callslip.cli.commands.documents import status, versions
from callslip.cli.main import main
from callslip.errors import CollectionNotFound

STEP = {"step": "upsert", "state": "done", "seconds": 0.5, "attempts": 1, "counts": {"chunks": 2}}

DOCUMENT: dict[str, Any] = {
    "document_id": "d1",
    "name": "leave.md",
    "tenant": "",
    "version": 1,
    "state": "deleted",
    "parent": None,
    "steps": [STEP],
    "warnings": [],
    "error": None,
    "receipt": None,
}


def printed(monkeypatch: pytest.MonkeyPatch, client: object, *arguments: str) -> str:
    """The output of the command over a client."""
    monkeypatch.setattr(status, "connect", lambda _: nullcontext(client))
    monkeypatch.setattr(status, "plain", lambda message: message)
    result = CliRunner().invoke(main, ["status", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments: str) -> str:
    """What the command prints before it asks a server."""
    result = CliRunner().invoke(main, ["status", *arguments, "--url", "http://127.0.0.1:9"])
    assert result.exit_code == 1
    return result.output


@pytest.mark.parametrize(
    ("receipt", "line"),
    [
        (
            {"before": {"blobs": 3}, "after": {"blobs": 0}},
            "blobs: 3 before it was deleted, 0 after",
        ),
        ({"before": {"blobs": 3}}, "blobs: 3 before it was deleted, ? after"),
        (None, ""),
    ],
)
def test_a_deleted_document_has_the_counts_of_its_receipt(
    monkeypatch: pytest.MonkeyPatch, receipt: dict[str, Any] | None, line: str
) -> None:
    class Client:
        def get_document(self, _: str) -> dict[str, Any]:
            return DOCUMENT | {"receipt": receipt}

    output = printed(monkeypatch, Client(), "d1")
    assert "leave.md (version 1): deleted" in output
    assert line in output
    assert ("before it was deleted" in output) == (receipt is not None)


@pytest.mark.parametrize(
    ("days", "words"),
    [
        ({}, "leave.md (version 1): live\n"),
        ({"valid_from": "2027-11-12", "valid_to": None}, ": live, in force from 2027-11-12\n"),
        (
            {"valid_from": "2027-11-12", "valid_to": "2028-01-01"},
            ": live, in force from 2027-11-12 until 2028-01-01\n",
        ),
    ],
)
def test_a_document_has_the_days_between_which_it_is_in_force(
    monkeypatch: pytest.MonkeyPatch, days: dict[str, Any], words: str
) -> None:
    class Client:
        def get_document(self, _: str) -> dict[str, Any]:
            return DOCUMENT | {"state": "live", **days}

    assert words in printed(monkeypatch, Client(), "d1")


def test_a_collection_counts_its_live_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"name": "main", "documents": 2, "store": "chroma", "embedder": "e5"}

    class Client:
        def list_collections(self) -> dict[str, Any]:
            return {"collections": [record]}

        def documents(self, _: str) -> list[dict[str, Any]]:
            return []

    assert "main: 2 live documents, chroma, e5\n" in printed(monkeypatch, Client())


def test_a_named_collection_is_shown_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    record = {"documents": 2, "store": "chroma", "embedder": "e5"}
    document = DOCUMENT | {"state": "live"}

    class Client:
        def list_collections(self) -> dict[str, Any]:
            return {"collections": [record | {"name": "laws"}, record | {"name": "main"}]}

        def documents(self, _: str) -> list[dict[str, Any]]:
            return [document]

    title = "Documents of 'main' (those of another: -c NAME):\n"
    every = printed(monkeypatch, Client())
    assert "laws: 2" in every
    assert title in every
    alone = printed(monkeypatch, Client(), "-c", "main")
    assert "main: 2" in alone
    assert "laws" not in alone
    assert title not in alone


class Empty:
    """A server without collections."""

    def list_collections(self) -> dict[str, Any]:
        return {"collections": []}

    def documents(self, name: str) -> list[dict[str, Any]]:
        raise CollectionNotFound(f"collection {name!r} does not exist")


def test_the_default_collection_is_empty_before_its_first_document(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "Nothing in 'main' yet." in printed(monkeypatch, Empty())


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_named_collection_that_does_not_exist_is_an_error(
    monkeypatch: pytest.MonkeyPatch, more: list[str]
) -> None:
    monkeypatch.setattr(status, "connect", lambda _: nullcontext(Empty()))
    result = CliRunner().invoke(main, ["status", "-c", "nope", *more])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "Error: collection 'nope' does not exist\n" in result.stderr


def test_a_failure_counts_its_attempts_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    letter = {
        "document_id": "d1",
        "failed_at": 0.0,
        "collection": "main",
        "tenant": "",
        "name": "leave.md",
        "attempts": 1,
        "crashes": 0,
        "error": {"type": "no-text", "detail": "it is blank", "advice": "Scan it."},
        "step": "extract",
    }
    monkeypatch.setattr(versions, "dead_letters", lambda *_: [letter])
    output = printed(monkeypatch, object(), "--failed")
    assert "no-text in step extract (1 attempt, 0 crashes): it is blank" in output


@pytest.mark.parametrize(("arguments", "collection"), [([], None), (["-c", "main"], "main")])
def test_failures_are_those_of_a_named_collection(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], collection: str | None
) -> None:
    class Client:
        def list_dead_letters(self, **given: Any) -> SimpleNamespace:
            assert given["collection"] == collection
            return SimpleNamespace(dead_letters=[], next_after=None)

    where = f" in {collection!r}" if collection else ""
    assert printed(monkeypatch, Client(), "--failed", *arguments) == f"Nothing failed{where}.\n"


@pytest.mark.parametrize("other", [["d1"], ["--batch", "nightly"], ["--batch", ""], [""]])
def test_failures_are_not_those_of_a_document_or_a_batch(other: list[str]) -> None:
    assert "--failed goes with neither a document nor --batch" in refused("--failed", *other)


@pytest.mark.parametrize(
    ("arguments", "what"), [([""], "document_id"), (["--batch", ""], "batch_id")]
)
def test_an_empty_id_is_none(arguments: list[str], what: str) -> None:
    assert f"Error: {what} is empty\n" in refused(*arguments)
