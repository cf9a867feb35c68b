"""Every messy file over HTTP and through the whole chain: live, or failed with its reason."""

import pytest
from api_calls import Api
from long_forms import sample
from messy import OWN_ROWS, REAL_ROWS, TEXT, content_of, expected_of
from stack import Stack

from callslip.errors import BY_SLUG

ROWS = [*OWN_ROWS, *sample(REAL_ROWS, 15)]
"""Every reader meets every file in test_messy_files.py; here a part of them takes the whole way."""


@pytest.mark.long
def test_every_messy_file_ends_as_its_manifest_expects_and_the_workers_go_on(
    lexical_stack: Stack,
) -> None:
    # Keyword search alone: what is shown here is states, and the vectors of 2 MB take minutes.
    with Api(lexical_stack) as api:
        check_all(api)


def check_all(api: Api) -> None:
    """Send every file, wait until each has ended, and compare."""
    sent = {row["file"]: submit(api, row["file"]) for row in ROWS}
    found = {name: api.settled(sent[name]) if sent[name] else None for name in sent}
    wrong = {}
    for row in ROWS:
        document = found[row["file"]]
        if document is None:
            ended = "empty-file"
        else:
            ended = "live" if document["state"] == "live" else document["error"]["type"]
        expected = {"live" if kind is TEXT else kind.slug for kind in expected_of(row)}
        if ended not in expected:
            wrong[row["file"]] = (ended, expected)
    assert wrong == {}
    failed = [d for d in found.values() if d and d["state"] == "failed"]
    assert all(d["error"]["advice"] and d["error"]["type"] in BY_SLUG for d in failed)
    api.live(text="The workers go on.", name="after")
    assert api.search("do the workers go on").json()["hits"][0]["text"] == "The workers go on."


def submit(api: Api, name: str) -> str | None:
    """The document's id, or None for a file that the API itself refuses as empty."""
    answer = api.upload(name, content_of(name), allow_duplicate="true")
    if answer.status_code == 422:
        assert answer.json()["type"] == "urn:callslip:problem:empty-file"
        return None
    assert answer.status_code == 202, answer.text
    document_id: str = answer.json()["document_id"]
    return document_id
