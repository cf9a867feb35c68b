"""A worker that must end gives back the leases that it still has."""

from callslip.errors import LeaseLost
from callslip.stores.ledger.base.lease_keeper import LeaseKeeper, give_back_all


def test_only_leases_that_are_worked_on_and_can_be_given_back_are() -> None:
    given: list[str] = []

    def lost() -> None:
        raise LeaseLost("another worker has it")

    def keeper(what: str, give_back: object = None) -> LeaseKeeper:
        return LeaseKeeper(lambda: None, 60.0, what, give_back)  # type: ignore[arg-type]

    with (
        keeper("a step", lambda: given.append("a step")),
        keeper("a lost step", lost),
        keeper("a run"),
    ):
        with keeper("a finished step", lambda: given.append("a finished step")):
            pass
        assert give_back_all() == ["a step"]
    assert given == ["a step"]
    assert give_back_all() == []
