"""Eight processes on one ledger."""

import multiprocessing
import time
from collections import Counter
from pathlib import Path

import pytest
from ledger_moves import LONG, claim, submit

from callslip.stores.ledger import STEPS, Accepted, Claim, Ledger

pytest_plugins = ["ledger_fixtures"]

PROCESSES, VERSIONS = 8, 50
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["ledger_moves"])  # so that each starts in milliseconds


def _open(url: str, log: Path) -> None:
    """Make the ledger, all at the same time."""
    ledger = Ledger(url)
    ledger.create()
    ledger.close()
    log.write_text("made")


def _work(url: str, items: list[Accepted], log: Path) -> None:
    """Claim whatever can be claimed until all is done; note each step that was finished."""
    ledger = Ledger(url)
    finished = []
    left = set(items)
    while left:
        for item in list(left):
            for step in STEPS:
                claimed = claim(ledger, item, step, lease=LONG)
                if not isinstance(claimed, Claim):
                    if claimed.reason == "done" and step == STEPS[-1]:
                        left.discard(item)
                    continue
                chunk_id = f"chunk of {item.document_id}"
                if step == "upsert":
                    ledger.chunks.expect(claimed, {chunk_id: "hash"})
                    ledger.leases.go_live(claimed, [chunk_id], {})
                else:
                    ledger.leases.finish(claimed, "artifact", {})
                finished.append(f"{item.document_id} {step}")
    ledger.close()
    log.write_text("\n".join(finished))


def _in_processes(target: object, folder: Path, *given: object) -> list[str]:
    """Run it in all processes; what each wrote into its log."""
    logs = [folder / f"{target.__name__}-{n}" for n in range(PROCESSES)]  # type: ignore[attr-defined]
    started = [CONTEXT.Process(target=target, args=(*given, log)) for log in logs]  # type: ignore[arg-type]
    for process in started:
        process.start()
    deadline = time.monotonic() + 300
    for process in started:
        process.join(max(0.0, deadline - time.monotonic()))
    codes = [process.exitcode for process in started]
    for process in started:
        process.kill()
    assert codes == [0] * PROCESSES
    return [log.read_text() for log in logs]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_eight_processes_do_each_step_of_fifty_versions_once(
    ledger: Ledger, ledger_url: str, tmp_path: Path
) -> None:
    items = [submit(ledger, "one", f"{n}.txt") for n in range(VERSIONS)]
    logs = _in_processes(_work, tmp_path, ledger_url, items)
    finished = Counter(line for log in logs for line in log.splitlines())
    assert len(finished) == VERSIONS * len(STEPS)
    assert set(finished.values()) == {1}
    for item in items:
        found = ledger.documents.get(item.document_id)
        assert found.state == "live"
        assert [s.attempts for s in found.steps] == [1] * len(STEPS)
    assert len(ledger.chunks.visible([f"chunk of {i.document_id}" for i in items])) == VERSIONS


@pytest.mark.long
def test_eight_processes_make_one_ledger(ledger_url: str, tmp_path: Path) -> None:
    assert _in_processes(_open, tmp_path, ledger_url) == ["made"] * PROCESSES
    ledger = Ledger(ledger_url)
    ledger.create()
    assert ledger.collections.all() == []
    ledger.close()
