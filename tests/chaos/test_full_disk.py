"""Another program fills the disk while documents are ingested, and frees it after a while."""

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from long_forms import ALL
from outcome import COLLECTION, Outcome, essay
from processes import waits_until
from stack import Stack

from callslip.workers.store_checks import DOUBTS

DISK_MB = 300
MARK_MB = 100

FULL_SECONDS = 40.0
"""How long the disk stays full."""

HEALTHY_SECONDS = 180.0
"""The longest time from the moment that the disk has room again until all is well."""

SETTINGS = {
    "CALLSLIP_INGEST__MIN_FREE_MB": str(MARK_MB),
    "CALLSLIP_INGEST__LEASE_SECONDS": "6",
    "CALLSLIP_INGEST__SWEEP_SECONDS": "1",
    "CALLSLIP_INGEST__RESEND_SECONDS": "4",
    "CALLSLIP_MAINTENANCE__PROBE_SECONDS": "3",
}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of DISK_MB in memory."""
    if not ALL:
        pytest.skip("a part of `make test-all`")
    mount = ("/bin/mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", str(tmp_path))
    if subprocess.run(mount, check=False).returncode:
        pytest.skip("a tmpfs can only be mounted by root")
    yield tmp_path
    subprocess.run(("/bin/umount", "--lazy", str(tmp_path)), check=True)


class Submitter:
    """Submits one document after the other, and searches between them."""

    def __init__(self, url: str) -> None:
        self.texts: dict[str, str] = {}
        self.refused = 0
        self.others: list[str] = []
        self.searches: list[tuple[float, bool]] = []
        self._url, self._stop = url, threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Inside the block, documents are submitted and searched."""
        threads = [threading.Thread(target=self._submit), threading.Thread(target=self._search)]
        for thread in threads:
            thread.start()
        yield
        self._stop.set()
        for thread in threads:
            thread.join()

    def _submit(self) -> None:
        with httpx.Client(base_url=self._url, timeout=30, trust_env=False) as http:
            while not self._stop.wait(0.2):
                text = essay(4)
                answer = http.post(
                    f"/v1/collections/{COLLECTION}/documents",
                    json={"text": text, "name": f"{time.monotonic_ns()}.txt"},
                )
                if answer.status_code == 202:
                    self.texts[answer.json()["document_id"]] = text
                elif answer.status_code == 507:
                    assert answer.json()["type"].endswith("disk-full")
                    assert "free" in answer.json()["detail"]
                    self.refused += 1
                else:
                    self.others.append(f"{answer.status_code} {answer.text[:200]}")

    def _search(self) -> None:
        with httpx.Client(base_url=self._url, timeout=30, trust_env=False) as http:
            while not self._stop.wait(0.3):
                query = {"collection": COLLECTION, "query": "who receives a receipt with a number?"}
                answer = http.post("/v1/search", json=query)
                good = answer.status_code == 200 and bool(answer.json()["hits"])
                self.searches.append((time.monotonic(), good))

    def good_searches(self, since: float, until: float) -> tuple[int, int]:
        """The number of searches that ended in a time, and of those with hits."""
        here = [good for at, good in self.searches if since < at < until]
        return len(here), sum(here)


def fill(disk: Path) -> Path:
    """Leave no byte on the disk, in a file that it names."""
    ballast = disk / "of-another-program"
    with ballast.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * (1 << 20))
    return ballast


def is_whole(outcome: Outcome, document_id: str, text: str) -> bool:
    """Whether the document is live with exactly its chunks."""
    with suppress(AssertionError):
        outcome.wait(document_id, "live", "failed")
        outcome.assert_whole(document_id, text)
        return True
    return False


def test_a_full_disk_loses_nothing(small_disk: Path, models_dir: Path) -> None:
    home = small_disk / "data"
    home.mkdir()
    (home / "models").symlink_to(models_dir)
    stack = Stack(home, SETTINGS).start()
    try:
        outcome = Outcome(stack)
        for _ in range(3):
            outcome.wait(outcome.submit(essay(4)), "live")
        submitter = Submitter(stack.url)
        with submitter.running():
            time.sleep(15)
            before = len(submitter.texts)
            full_at = time.monotonic()
            ballast = fill(small_disk)
            while time.monotonic() - full_at < FULL_SECONDS:
                time.sleep(1)
                with suppress(OSError), ballast.open("ab", buffering=0) as file:
                    file.write(b"\0" * (1 << 20))  # whatever was freed in the meantime
            searched, good = submitter.good_searches(full_at, time.monotonic())
            ballast.unlink()
            free_at = time.monotonic()
            accepted = len(submitter.texts)
            assert waits_until(lambda: len(submitter.texts) > accepted, HEALTHY_SECONDS)
            taken_after = time.monotonic() - free_at
            time.sleep(3)
        assert waits_until(lambda: outcome.http.get("/readyz").status_code == 200, HEALTHY_SECONDS)
        ready_after = time.monotonic() - free_at
        for document_id in submitter.texts:
            outcome.wait(document_id, "live", "failed")
        assert waits_until(lambda: not outcome.broker.exists(DOUBTS), HEALTHY_SECONDS)
        whole_after = time.monotonic() - free_at
        outcome.close()
        stack.stop()
        stack.start()  # a store that acknowledged more than it kept shows it now
        outcome = Outcome(stack)
        assert waits_until(lambda: not outcome.broker.exists(DOUBTS), HEALTHY_SECONDS)
        lost = [i for i, text in submitter.texts.items() if not is_whole(outcome, i, text)]
        outcome.close()
        sys.stdout.write(
            f"\n{len(submitter.texts)} documents accepted, {before} before the disk was full;"
            f" {submitter.refused} refused with 507, {len(submitter.others)} with another status"
            f" {submitter.others[:3]};\nwhile it was full: {good} of {searched} searches had hits;"
            f"\nafter it had room: next document accepted {taken_after:.1f} s, ready"
            f" {ready_after:.1f} s, all live and audited {whole_after:.1f} s; lost: {len(lost)}"
        )
        sys.stdout.write(f"\n{(home / 'logs' / 'up.log').read_text()}")
        assert not lost
        assert good == searched
    finally:
        stack.stop()
