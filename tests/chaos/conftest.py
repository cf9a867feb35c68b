"""A stack that notices a dead worker within seconds, and what the tests look at."""

from collections.abc import Iterator

import pytest
from outcome import Outcome
from stack import Stack

HASTY = {
    "CALLSLIP_INGEST__LEASE_SECONDS": "6",
    "CALLSLIP_INGEST__SWEEP_SECONDS": "1",
    "CALLSLIP_INGEST__RESEND_SECONDS": "4",
    "CALLSLIP_INGEST__MAX_ATTEMPTS": "2",
}


@pytest.fixture(scope="session")
def hasty_stack(tmp_path_factory: pytest.TempPathFactory, models_dir: object) -> Iterator[Stack]:
    """One stack for all chaos tests that let it go on afterwards."""
    home = tmp_path_factory.mktemp("hasty")
    (home / "models").symlink_to(str(models_dir))
    stack = Stack(home, HASTY).start()
    yield stack
    stack.stop()


@pytest.fixture
def outcome(hasty_stack: Stack) -> Iterator[Outcome]:
    """The ledger and the store of the stack, seen from outside."""
    seen = Outcome(hasty_stack)
    yield seen
    seen.close()
