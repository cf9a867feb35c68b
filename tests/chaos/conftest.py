"""A stack that notices a dead worker within seconds, and what the tests look at."""

from collections.abc import Iterator

import pytest
from outcome import Outcome
from shim import Shim
from stack import Stack

HASTY = {
    "CALLSLIP_INGEST__LEASE_SECONDS": "6",
    "CALLSLIP_INGEST__SWEEP_SECONDS": "1",
    "CALLSLIP_INGEST__RESEND_SECONDS": "4",
    "CALLSLIP_INGEST__MAX_ATTEMPTS": "2",
    "CALLSLIP_MAINTENANCE__PROBE_SECONDS": "2",
}


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Shim:
    """The clock of `hasty_stack`, and its syncs."""
    return Shim(tmp_path_factory.mktemp("shim") / "shim")


@pytest.fixture(scope="session")
def hasty_stack(
    tmp_path_factory: pytest.TempPathFactory, models_dir: object, shim: Shim
) -> Iterator[Stack]:
    """One stack for all chaos tests that let it go on afterwards."""
    home = tmp_path_factory.mktemp("hasty")
    (home / "models").symlink_to(str(models_dir))
    stack = Stack(home, HASTY | shim.environ).start()
    yield stack
    stack.stop()


@pytest.fixture
def outcome(hasty_stack: Stack) -> Iterator[Outcome]:
    """The ledger and the store of the stack, seen from outside."""
    seen = Outcome(hasty_stack)
    yield seen
    seen.close()
