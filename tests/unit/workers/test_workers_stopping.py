"""A worker that must end gives back the leases that it still has."""

from callslip.errors import LeaseLost
from callslip.stores.ledger.base.lease_keeper import Lease, Renewals, give_back_all


def test_only_leases_that_are_worked_on_and_can_be_given_back_are() -> None:
    given: list[str] = []

    def lost() -> None:
        raise LeaseLost("another worker has it")

    def kept(*leases: Lease) -> Renewals:
        return Renewals(leases, lambda left: [None] * len(left), 60.0)

    step = Lease("a step", lambda: given.append("a step"))
    with kept(step, Lease("a lost step", lost), Lease("a run")):
        with kept(Lease("a finished step", lambda: given.append("a finished step"))):
            pass
        assert give_back_all() == ["a step"]
    assert given == ["a step"]
    assert give_back_all() == []
