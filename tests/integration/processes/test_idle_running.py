"""An idle ingest worker frees its models, and loses no document that arrives meanwhile."""

import time
import uuid

import psutil
import pytest
from api_calls import Api
from processes import waits_until
from stack import MakeStack, Stack

IDLE_SECONDS = 3.0
ROUNDS = 3


def pool(stack: Stack) -> set[int]:
    """The processes of the pool, without the readers of files that they start."""
    return {child.pid for child in psutil.Process(stack.pids("ingest")[0]).children()}


def megabytes(stack: Stack) -> float:
    """What the processes of the ingest worker share with no others."""
    return sum(psutil.Process(pid).memory_full_info().uss for pid in stack.pids("ingest")) / 1e6


def text() -> str:
    return f"The parade of Lisbon begins at noon, says Maria Gomez. {uuid.uuid4().hex}"


@pytest.mark.long
def test_an_idle_worker_frees_its_models_and_ingests_the_next_document(
    make_stack: MakeStack,
) -> None:
    stack = make_stack(
        {"CALLSLIP_INGEST__IDLE_SECONDS": str(IDLE_SECONDS)}
        | {"CALLSLIP_INGEST__SWEEP_SECONDS": "3600"}  # which would send a lost message again
    ).start()
    before = megabytes(stack)
    with Api(stack) as api:
        api.live(text=text(), name="first")
        worked, used = pool(stack), megabytes(stack)
        renewed = waits_until(lambda: len(pool(stack) - worked) == len(worked), 30)
        assert renewed, "the pool was not renewed"
        assert megabytes(stack) < before + (used - before) / 5
        seen = set(worked)
        for number in range(ROUNDS):  # the worker looks once a second
            api.live(text=text(), name=str(number))
            seen |= pool(stack)
            time.sleep(IDLE_SECONDS + number / ROUNDS)
        again = waits_until(lambda: len(seen | pool(stack)) > 2 * len(worked), 30)
        assert again, "the pool was not renewed again"
        api.live(text=text(), name="last")
        assert api.search("When does the parade begin?").json()["hits"]
    log = (stack.data_dir / "logs" / "ingest.log").read_text()
    assert "exited with" not in log
    assert "Traceback" not in log
