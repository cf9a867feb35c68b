"""`callslip delete` names what it deletes, waits for a yes, and deletes nothing else."""

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from callslip.cli.commands.documents import delete
from callslip.cli.main import main
from callslip.errors import DocumentNotFound


class Client:
    """A server with two documents, of which one is deleted, and two collections."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    def get_document(self, document_id: str) -> SimpleNamespace:
        states = {"d1": "live", "d2": "deleted"}
        if document_id not in states:
            raise DocumentNotFound(f"document {document_id!r} does not exist")
        return SimpleNamespace(
            document_id=document_id,
            name=f"{document_id}.md",
            collection="main",
            state=states[document_id],
        )

    def delete_document(self, document_id: str) -> dict[str, Any]:
        self.deleted.append(document_id)
        return {"document_id": document_id}

    def list_collections(self) -> SimpleNamespace:
        records = [
            SimpleNamespace(name="main", documents=1, attached=None),
            SimpleNamespace(name="films", documents=0, attached=object()),
        ]
        return SimpleNamespace(collections=records)

    def delete_collection(self, name: str) -> dict[str, Any]:
        self.deleted.append(name)
        return {"collection": name}


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    made = Client()
    monkeypatch.setattr(delete, "connect", lambda _: nullcontext(made))
    monkeypatch.setattr(delete, "plain", lambda message: message)
    return made


def run(*arguments: str, answer: str = "", code: int = 0) -> Result:
    result = CliRunner().invoke(main, ["delete", *arguments], input=answer)
    assert result.exit_code == code, result.output
    return result


def test_documents_are_named_and_deleted_after_a_yes(client: Client) -> None:
    refused = run("d1", "d2", answer="n\n", code=1).stderr
    assert "  'd1.md' in collection 'main'\n" in refused
    assert "Delete 2 documents, with what came within? [y/N]" in refused
    assert client.deleted == []
    output = run("d1", "d2", "d1", answer="y\n").stdout
    assert client.deleted == ["d1", "d2"]
    assert "d1  d1.md was deleted.\n" in output
    assert "d2  d2.md was deleted before.\n" in output
    assert output.endswith("`callslip status ID` shows the receipt.\n")


def test_without_an_answer_nothing_is_deleted(client: Client) -> None:
    run("d1", code=1)
    run("-c", "main", "--all", code=1)
    assert client.deleted == []


def test_an_unknown_document_is_an_error_before_another_one_is_deleted(client: Client) -> None:
    assert "document 'd9' does not exist" in run("d1", "d9", "--yes", code=1).stderr
    assert client.deleted == []


def test_a_collection_is_named_and_deleted_after_a_yes(client: Client) -> None:
    question = run("-c", "main", "--all", answer="n\n", code=1).stderr
    assert "Delete collection 'main' with 1 live document? [y/N]" in question
    assert client.deleted == []
    assert (
        "Collection 'main' with 1 live document was deleted.\n"
        in run(*("-c", "main", "--all"), answer="y\n").stdout
    )
    assert client.deleted == ["main"]


def test_a_program_says_yes_and_reads_json(client: Client) -> None:
    documents = run("d1", "--yes", "--json")
    assert json.loads(documents.stdout) == {"deleted": [{"document_id": "d1"}]}
    assert documents.stderr == ""
    collection = run("-c", "main", "--all", "--yes", "--json")
    assert json.loads(collection.stdout) == {"collection": "main"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-c", "nope", "--all"], "collection 'nope' does not exist"),
        (["-c", "films", "--all"], "`callslip detach films`"),
        ([], "Name either the ids of documents"),
        (["--all"], "Name either"),
        (["-c", "main"], "Name either"),
        (["d1", "-c", "main"], "Name either"),
        (["d1", "-c", "main", "--all"], "Name either"),
    ],
)
def test_what_names_nothing_that_can_be_deleted_is_an_error(
    client: Client, arguments: list[str], words: str
) -> None:
    assert words in run(*arguments, "--yes", code=1).stderr
    assert client.deleted == []
