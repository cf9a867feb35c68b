"""An import of an older archive brings nothing back that was purged here."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from moving import COLLECTION, Site, fill, silent

from callslip.stores.blobs import PURGES
from callslip.stores.transfer import Report, export_collection, import_archive


@pytest.fixture
def sites(tmp_path: Path) -> Iterator[tuple[Site, Site]]:
    """Two installations, the first with the collection."""
    with ExitStack() as stack:
        made = []
        for name in ("here", "there"):
            (tmp_path / name).mkdir()
            made.append(Site(tmp_path / name))
            stack.enter_context(closing(made[-1].ledger))
        fill(made[0])
        yield made[0], made[1]


def take(site: Site, path: Path) -> Report:
    """Import."""
    return import_archive(site.backend, path, name=None, to=None, default="memory", progress=silent)


@pytest.mark.parametrize("state", ["deleted", "unknown", "another has its name"])
def test_a_purged_document_stays_out(sites: tuple[Site, Site], tmp_path: Path, state: str) -> None:
    here, there = sites
    purged = here.ledger.documents.id_of(COLLECTION, "two")
    assert purged
    export_collection(here.backend, COLLECTION, tmp_path / "a.tar", silent)
    if state == "deleted":
        take(there, tmp_path / "a.tar")
        there.ledger.documents.delete(purged)
    elif state == "another has its name":
        there.make()
        there.publish("two", "words")
    receipt = {"name": "r.json", "document_ids": [purged]}
    there.blobs.write(PURGES, "r.json", json.dumps(receipt).encode())
    report = take(there, tmp_path / "a.tar")
    assert report.documents == 3
    assert report.notes[0] == "1 of its documents purged here, and left out"
    assert not any("have them back" in note for note in report.notes)
    assert purged not in {each for each, _ in there.ledger.transcripts.ids(COLLECTION)}
    assert not there.blobs.names(purged) or state == "deleted"
