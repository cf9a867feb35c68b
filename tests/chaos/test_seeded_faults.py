"""Faults of many kinds, in a seeded order, over documents on their way: nothing is lost."""

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from campaign import Campaign, report, wrong_documents
from documents import Documents
from embedding_server import EmbeddingServer
from faults import WEIGHTS, Faults, own_disk, schedule
from outcome import Outcome
from shim import Shim
from stack import Stack

FAULTS = int(os.environ.get("CALLSLIP_CHAOS_FAULTS", "0"))
DOCUMENTS = int(os.environ.get("CALLSLIP_CHAOS_DOCUMENTS", "500"))
SEED = int(os.environ.get("CALLSLIP_CHAOS_SEED") or random.randrange(10**6))

DISK_MB = 500

PER_DOCUMENT = 1.35
"""Operations of the stream for each document: the others are new versions and deletions."""

SETTINGS = {
    "CALLSLIP_INGEST__LEASE_SECONDS": "6",
    "CALLSLIP_INGEST__SWEEP_SECONDS": "1",
    "CALLSLIP_INGEST__RESEND_SECONDS": "4",
    "CALLSLIP_INGEST__MAX_ATTEMPTS": "4",
    "CALLSLIP_INGEST__RETRY_FOR_SECONDS": "20",
    "CALLSLIP_INGEST__MIN_FREE_MB": "100",
    "CALLSLIP_MAINTENANCE__PROBE_SECONDS": "2",
    "CALLSLIP_EMBEDDER__TIMEOUT_SECONDS": "4",
}
"""Those of a stack that is quick to notice; four workers may die in one step of a document."""


SHORT = ("clock jumps", "broker emptied", "messages again", "store emptied", "power loss")
"""The kinds of the short form; tests/chaos/test_killed_workers.py kills processes."""


def say(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[tuple[Path, Path | None]]:
    """A folder for data, and the disk of its own on which it is, if there is one."""
    data = tmp_path / "disk"
    data.mkdir()
    with own_disk(data, DISK_MB) as disk:
        yield data / "data", disk


def test_nothing_is_lost_or_doubled_by_some_faults(hasty_stack: Stack, shim: Shim) -> None:
    documents = Documents(0, "seeded")
    faults = Faults(hasty_stack, shim, documents, 0, clocks=(0.0, -300.0))
    kinds = {kind: 1 for kind in SHORT if kind not in faults.unavailable()}
    Outcome(hasty_stack, collection=documents.collection).close()  # makes the collection
    campaign = Campaign(hasty_stack, documents, faults, 0, say)
    campaign.run(schedule(0, len(kinds), kinds, most=4), 14)
    outcome = Outcome(hasty_stack, collection=documents.collection)
    wrong = wrong_documents(outcome, documents)
    outcome.close()
    assert not wrong


@pytest.mark.skipif(not FAULTS, reason="`make chaos` runs it")
@pytest.mark.timeout(0)
def test_nothing_is_lost_or_doubled_by_hundreds_of_faults(
    folder: tuple[Path, Path | None], tmp_path: Path, models_dir: Path
) -> None:
    home, disk = folder
    home.mkdir()
    (home / "models").symlink_to(models_dir)
    shim, documents = Shim(tmp_path / "shim"), Documents(SEED, "chaos")
    say(f"seed {SEED}: {FAULTS} faults, {DOCUMENTS} documents, in {home}")
    with EmbeddingServer() as embedder:
        stack = Stack(home, SETTINGS | embedder.environ | shim.environ).start()
        try:
            faults = Faults(stack, shim, documents, SEED, disk=disk)
            for kind, reason in faults.unavailable().items():
                say(f"left out: {kind}: {reason}")
            kinds = {k: w for k, w in WEIGHTS.items() if k not in faults.unavailable()}
            Outcome(stack).close()  # makes the collection
            campaign = Campaign(stack, documents, faults, SEED, say)
            campaign.run(schedule(SEED, FAULTS, kinds, most=4), round(DOCUMENTS * PER_DOCUMENT))
            outcome = Outcome(stack)
            wrong = wrong_documents(outcome, documents)
            outcome.close()
            say(f"seed {SEED}\n{report(campaign, documents, faults)}\nwrong: {wrong or 'nothing'}")
            assert not wrong
        finally:
            stack.stop()
