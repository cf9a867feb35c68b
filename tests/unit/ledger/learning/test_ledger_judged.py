"""Searches of which hits helped, as the ledger gives them."""

import time

import pytest
from learned import say, trace
from ledger_moves import publish
from sqlalchemy import update

from callslip.config.sections.ranking import MemorySettings, TracesSettings
from callslip.retrieval.ranking.features import Features
from callslip.retrieval.tracing.recording import Learning
from callslip.stores.ledger import Ledger
from callslip.stores.ledger.base.memory_tables import retrieval_events
from callslip.stores.ledger.learning import judged
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["ledger_fixtures"]

TOGETHER = 20
"""Searches of a page, of which the ledger reads more than one."""


def test_the_newest_searches_come_first_page_by_page_with_what_helped(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judged, "TOGETHER", TOGETHER)
    publish(ledger, "one", "abc")
    other = CollectionSchema("other", VectorSpec(4))
    ledger.collections.create(other, store="memory", embedder="tiny", analyzer="1")
    learning, now = Learning(ledger, MemorySettings(), TracesSettings(share=0)), time.time()
    basis = (Features(0.5, None, 0.0, 0.0, 0.0, 0.25),)
    made = [
        trace(f"question {n}", "abc", at=now - n // 2, basis=lambda: basis)
        for n in range(TOGETHER + 10)
    ]
    learning.record([*made, trace("elsewhere", "abc", collection="other")])
    for n, each in enumerate(made):
        say(ledger, each.trace_id, ["b", "a"], user=f"user {n}")
        say(ledger, each.trace_id, ["c"], "unhelpful", user=f"user {n}")
    say(ledger, made[1].trace_id, ["a"], "unhelpful", user="adam")
    say(ledger, made[1].trace_id, ["b"], "validated", user="validator")
    found = list(ledger.judged.newest("papers", 10_000))
    assert len({each.question for each in found}) == len(found) == TOGETHER + 10
    scopes = sorted(tuple(each.helped) for each in found)
    assert scopes == [(1, 2)] * (TOGETHER + 9) + [(2,)]
    assert (found[0].hits, found[0].basis) == (3, [[0.5, None, 0.0, 0.0, 0.0, 0.25]])
    assert found[0].vector is not None
    assert found[0].settings["fusion"] == "weighted"
    newest = [each.question for each in ledger.judged.newest("papers", 3)]
    assert newest == [each.question for each in found[:3]]
    assert list(ledger.judged.newest("other", 10)) == []
    earlier = {"hits": ["a", "b", "c"], "basis": found[0].basis, "packed": None}
    with ledger.judged._database.writing() as connection:  # as an earlier version wrote it
        connection.execute(update(retrieval_events).values(earlier))
    [again] = ledger.judged.newest("papers", 1)
    assert (again.hits, again.basis, again.helped) == (3, found[0].basis, found[0].helped)
