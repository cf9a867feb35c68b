"""Edits, corrections, cuts and rollbacks wait and count as a submission of the file does."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from pipeline_parts import paragraphs
from reader_parts import Installation, installation

from callslip.api.identity.state import identity_of
from callslip.api.v1.chunks import routes
from callslip.callers import PERMISSIONS
from callslip.errors import BacklogFull, CallslipError, Overloaded, WorkTimeout
from callslip.stores.ledger import KeyGrant, KeyLimits
from callslip.tasks import compute
from callslip.tasks.jobs import correcting

TEXT = paragraphs("one", "two", "three")

Change = Callable[[FlaskClient, str], Any]


@pytest.fixture
def it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    with installation(tmp_path, monkeypatch) as made:
        yield made
        identity_of(made.client.application).close()


def client(it: Installation, **limits: int) -> FlaskClient:
    """A client with a new key of these limits."""
    grant = KeyGrant(frozenset(PERMISSIONS), limits=KeyLimits(**limits))
    text, _ = it.ledger.api_keys.create("-".join(limits) or "free", grant)
    made = it.client.application.test_client()
    identity_of(it.client.application).keys._looked_at = -1e9  # there was none before
    made.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {text}"
    return made


def edit(client: FlaskClient, document_id: str) -> Any:
    return client.patch(f"/v1/documents/{document_id}", json={"title": "Another title"})


def roll_back(client: FlaskClient, document_id: str) -> Any:
    return client.post(f"/v1/documents/{document_id}/rollback", json={"version": 1})


def cut(client: FlaskClient, document_id: str) -> Any:
    return client.post(f"/v1/documents/{document_id}/cut", json={"max_tokens": 48})


def correct(client: FlaskClient, document_id: str) -> Any:
    url = f"/v1/documents/{document_id}"
    chunk = client.get(f"{url}/chunks").json["chunks"][0]
    texts = {chunk["chunk_id"]: f"{chunk['text']} corrected"}
    return client.post(f"{url}/corrections", json={"texts": texts})


CHANGES = [edit, roll_back, cut, correct]


def two_versions(it: Installation) -> str:
    """A document of two versions, both of which a change can start from."""
    it.put("a.txt", f"{TEXT}\n\nThe end.")
    return it.put("a.txt", TEXT)


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_counts_towards_the_quotas(it: Installation, change: Change) -> None:
    document_id, other = two_versions(it), it.put("b.txt", paragraphs("four"))
    small = change(client(it, bytes_per_day=5), document_id)
    assert (small.status_code, "may store on a day" in small.text) == (400, True)
    limited = client(it, documents_per_day=1)
    assert change(limited, document_id).status_code == 202
    assert edit(limited, other).status_code == 429
    assert it.ledger.documents.get(document_id).newest.version == 3


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("check", ["check_backlog", "check_backlog_of"])
def test_a_change_is_refused_while_too_much_waits(
    it: Installation, monkeypatch: pytest.MonkeyPatch, change: Change, check: str
) -> None:
    document_id = two_versions(it)

    def full(*_: Any) -> None:
        raise BacklogFull("too much waits", retry_after=7)

    monkeypatch.setattr(f"callslip.tasks.ingest.{check}", full)
    refused = change(client(it), document_id)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "7")
    assert it.ledger.documents.get(document_id).newest.version == 2


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_has_the_priority_of_a_submission(it: Installation, change: Change) -> None:
    document_id = two_versions(it)
    assert change(client(it), document_id).status_code == 202
    newest = it.ledger.documents.get(document_id).newest
    assert (newest.version, newest.priority) == (3, 0)


def test_what_makes_no_version_is_free(it: Installation) -> None:
    document_id = it.put("a.txt", TEXT)
    limited = client(it, documents_per_day=1)
    url = f"/v1/documents/{document_id}"
    for _ in range(3):
        assert limited.post(f"{url}/cut:preview", json={"max_tokens": 48}).status_code == 200
        assert limited.patch(url, json={"readers": ["group:board"]}).status_code == 200
        assert roll_back(limited, document_id).status_code == 200
    assert edit(limited, document_id).status_code == 202
    assert limited.patch(url, json={"readers": None}).status_code == 200


def refused_edit(client: FlaskClient, document_id: str) -> Any:
    sent = {"properties": {"valid_from": "soon"}}
    return client.patch(f"/v1/documents/{document_id}", json=sent)


def late_edit(client: FlaskClient, document_id: str) -> Any:
    url = f"/v1/documents/{document_id}"
    return client.patch(url, json={"title": "x"}, headers={"If-Match": '"7"'})


def unknown_version(client: FlaskClient, document_id: str) -> Any:
    return client.post(
        f"/v1/documents/{document_id}/corrections", json={"texts": {"f" * 32: "x"}, "version": 7}
    )


def empty_text(client: FlaskClient, document_id: str) -> Any:
    url = f"/v1/documents/{document_id}"
    chunk = client.get(f"{url}/chunks").json["chunks"][0]
    return client.post(f"{url}/corrections", json={"texts": {chunk["chunk_id"]: " "}})


@pytest.mark.parametrize("change", [refused_edit, late_edit, unknown_version, empty_text])
def test_a_change_that_is_refused_is_free(it: Installation, change: Change) -> None:
    document_id = it.put("a.txt", TEXT)
    limited = client(it, documents_per_day=1, bytes_per_day=len(TEXT))
    for _ in range(2):
        assert change(limited, document_id).status_code in {400, 404, 409, 412}
    assert correct(limited, document_id).status_code == 202
    assert edit(limited, document_id).status_code == 429


@pytest.mark.parametrize("error", [Overloaded("no worker"), WorkTimeout("no answer")])
def test_a_correction_that_may_be_made_yet_counts(
    it: Installation, monkeypatch: pytest.MonkeyPatch, error: CallslipError
) -> None:
    document_id = it.put("a.txt", TEXT)
    limited = client(it, documents_per_day=1)

    def fail(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(compute, "run", fail)
    assert correct(limited, document_id).status_code == error.status
    assert edit(limited, document_id).status_code == 429


def test_a_worker_makes_corrections_and_few_threads_wait(
    it: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    document_id = it.put("a.txt", TEXT)
    key, jobs, real = client(it), list[str](), compute.run

    def meanwhile(context: Any, job: str, request: Any, **more: Any) -> Any:
        jobs.append(job)
        assert correct(key, document_id).status_code == 503
        return real(context, job, request, **more)

    monkeypatch.setattr(routes, "MOST_WAITING", 1)
    monkeypatch.setattr(compute, "run", meanwhile)
    assert correct(key, document_id).status_code == 202
    assert jobs == [correcting.JOB]
