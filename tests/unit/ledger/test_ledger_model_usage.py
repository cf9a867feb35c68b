"""What language models have used, and the ceiling of a day, on each kind of database."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from callslip.errors import ModelBudgetSpent
from callslip.models.language_models.completion import Usage
from callslip.stores.ledger import Ledger, ModelUsage, Reservation, UsageRow
from callslip.stores.ledger.answers.model_usage import DAY_SECONDS, day_of

pytest_plugins = ["ledger_fixtures"]

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
TODAY = day_of(NOON)


@pytest.fixture
def usage(ledger: Ledger) -> ModelUsage:
    return ledger.model_usage


def reserve(
    usage: ModelUsage,
    tokens: int,
    *,
    collection: str = "papers",
    tenant: str = "",
    model: str = "small",
    ceiling: int = 100,
    now: float = NOON,
) -> Reservation:
    return usage.reserve(collection, tenant, model, tokens, ceiling=ceiling, now=now)


def test_real_tokens_take_the_place_of_reserved_ones(usage: ModelUsage) -> None:
    first = reserve(usage, 60)
    assert usage.today("papers", now=NOON) == 60
    assert usage.rows(TODAY) == []
    usage.settle(first, Usage(20, 5))
    assert usage.today("papers", now=NOON) == 25
    usage.settle(reserve(usage, 75), Usage(10, 1))
    assert usage.today("papers", now=NOON) == 36
    assert usage.rows(TODAY) == [UsageRow(TODAY, "small", 2, 30, 6)]


def test_a_call_that_used_more_than_was_reserved_is_counted_as_it_was(usage: ModelUsage) -> None:
    usage.settle(reserve(usage, 100), Usage(150, 10))
    assert usage.today("papers", now=NOON) == 160
    with pytest.raises(ModelBudgetSpent):
        reserve(usage, 1)


def test_what_is_released_can_be_reserved_again(usage: ModelUsage) -> None:
    usage.release(reserve(usage, 100))
    assert usage.today("papers", now=NOON) == 0
    reserve(usage, 100)
    assert usage.rows(TODAY) == []


def test_the_ceiling_is_reached_and_not_passed_and_is_renewed_at_midnight(
    usage: ModelUsage,
) -> None:
    reserve(usage, 60)
    with pytest.raises(ModelBudgetSpent) as raised:
        reserve(usage, 41)
    assert raised.value.status == 429
    assert raised.value.retry_after == 12 * 3600
    reserve(usage, 40)
    with pytest.raises(ModelBudgetSpent):
        reserve(usage, 1, model="large")
    midnight = NOON + DAY_SECONDS / 2
    with pytest.raises(ModelBudgetSpent) as raised:
        reserve(usage, 1, now=midnight - 1)
    assert raised.value.retry_after == 1
    reserve(usage, 100, now=midnight)


def test_a_call_that_is_more_than_a_day_is_never_made(usage: ModelUsage) -> None:
    with pytest.raises(ModelBudgetSpent):
        reserve(usage, 101)
    assert usage.today("papers", now=NOON) == 0


def test_without_a_ceiling_all_is_counted(usage: ModelUsage) -> None:
    reserve(usage, 10**7, ceiling=0)
    reserve(usage, 10**10, ceiling=0)
    assert usage.today("papers", now=NOON) == 10**10 + 10**7
    with pytest.raises(ModelBudgetSpent):
        reserve(usage, 1)


def test_each_place_has_a_ceiling_of_its_own(usage: ModelUsage) -> None:
    scopes = [("papers", ""), ("flats", "north"), ("flats", "south"), ("houses", "north")]
    for collection, tenant in scopes:
        given = reserve(usage, 100, collection=collection, tenant=tenant)
        usage.settle(given, Usage(99, 1))
    for collection, tenant in scopes:
        assert usage.today(collection, tenant, now=NOON) == 100


def test_rows_are_summed_by_day_and_model_of_what_is_named(usage: ModelUsage) -> None:
    for day, collection, tenant, model in (
        (0, "flats", "north", "small"),
        (0, "flats", "south", "small"),
        (0, "flats", "south", "large"),
        (1, "flats", "south", "small"),
        (1, "papers", "", "small"),
    ):
        now = NOON - day * DAY_SECONDS
        given = reserve(usage, 10, collection=collection, tenant=tenant, model=model, now=now)
        usage.settle(given, Usage(3, 2))
    one, two = (1, 3, 2), (2, 6, 4)
    assert usage.rows(TODAY - 1) == [
        UsageRow(TODAY, "large", *one),
        UsageRow(TODAY, "small", *two),
        UsageRow(TODAY - 1, "small", *two),
    ]
    assert usage.rows(TODAY - 1, collection="flats", tenant="north") == [
        UsageRow(TODAY, "small", *one)
    ]
    assert usage.rows(TODAY, collection="papers") == []


def test_a_call_over_midnight_belongs_to_the_day_it_began(usage: ModelUsage) -> None:
    usage.settle(reserve(usage, 50, now=NOON - DAY_SECONDS), Usage(1, 1))
    assert usage.today("papers", now=NOON - DAY_SECONDS) == 2
    assert usage.today("papers", now=NOON) == 0


def test_old_days_are_forgotten(usage: ModelUsage) -> None:
    for days in (0, 1, 2):
        usage.settle(reserve(usage, 9, now=NOON - days * DAY_SECONDS), Usage(1, 1))
    assert usage.trim(NOON - DAY_SECONDS) == 1
    assert [row.day for row in usage.rows(0)] == [TODAY, TODAY - 1]
    assert usage.today("papers", now=NOON - 2 * DAY_SECONDS) == 0


def test_what_was_paid_stays_when_the_collection_goes(ledger: Ledger, usage: ModelUsage) -> None:
    usage.settle(reserve(usage, 9), Usage(1, 1))
    ledger.collections.delete("papers")
    ledger.collections.forget("papers")
    assert usage.rows(TODAY, collection="papers") == [UsageRow(TODAY, "small", 1, 1, 1)]


def test_calls_at_the_same_time_never_pass_the_ceiling_together(
    ledger_url: str, ledger: Ledger
) -> None:
    others = [Ledger(ledger_url) for _ in range(8)]

    def calls(n: int) -> list[int]:
        """What each of 25 calls used or was refused (0), while the total is watched."""
        usage, used = others[n].model_usage, []
        for call in range(25):
            try:
                given = reserve(usage, 7, model=f"m{(n + call) % 3}", ceiling=500)
            except ModelBudgetSpent:
                used.append(0)
                continue
            assert usage.today("papers", now=NOON) <= 500
            if call % 5 == 0:
                usage.release(given)
                used.append(0)
            elif call % 5 == 1:  # its process was killed
                used.append(7)
            else:
                usage.settle(given, Usage(4, 1))
                used.append(5)
        return used

    with ThreadPoolExecutor(8) as threads:
        used = [tokens for each in threads.map(calls, range(8)) for tokens in each]
    for other in others:
        other.close()
    total = ledger.model_usage.today("papers", now=NOON)
    assert total == sum(used)
    assert 500 - 7 < total <= 500
    rows = ledger.model_usage.rows(TODAY)
    assert sum(row.calls for row in rows) == used.count(5)
    assert sum(row.input_tokens + row.output_tokens for row in rows) == 5 * used.count(5)
