"""Recording what searches did, so that an outcome can be learned from (specification 003 §7)."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from callslip.errors import CollectionNotFound
from config.ranking import MemorySettings, TracesSettings
from retrieval.trace import Trace
from stores.chunk_stats import Verdict
from stores.ledger import Ledger, OutcomeRecord, QueryProfile, RetrievalEvent
from stores.ledger.searches import profile_id

SCORED = 40
"""Hits whose components are kept: as many as are reranked."""


class Learning:
    """What goes into the ledger after an answer went out."""

    def __init__(self, ledger: Ledger, memory: MemorySettings, traces: TracesSettings) -> None:
        self._ledger, self._memory, self._traces = ledger, memory, traces

    def record(self, traces: Sequence[Trace]) -> None:
        """Record searches, and their traces, as the settings and the collections say.

        Searches of a collection that is gone are left out.
        """
        by_collection = defaultdict(list)
        for trace in traces:
            by_collection[trace.collection].append(trace)
        events = []
        for name, some in by_collection.items():
            try:
                keep = self._ledger.collections.get(name).options.keep_queries
            except CollectionNotFound:
                continue
            events += [self._event(trace, keep_queries=keep) for trace in some]
        if events:
            self._ledger.searches.record(events, remember=self._memory.record)

    def outcome(
        self,
        trace_id: str,
        chunk_ids: Sequence[str],
        verdict: Verdict,
        *,
        user: str = "",
        key: str = "",
        limited: bool = False,
    ) -> tuple[OutcomeRecord, bool]:
        """Learn from what was said of hits; the second value says whether it is new.

        `limited` takes no more than memory.feedback_per_hour of one user. Errors are those of
        `Outcomes.add`.
        """
        return self._ledger.outcomes.add(
            trace_id,
            chunk_ids,
            verdict,
            half_life_weeks=self._memory.half_life_weeks,
            user=user,
            key=key,
            per_hour=self._memory.feedback_per_hour if limited else None,
        )

    def withdraw(self, outcome_id: str) -> OutcomeRecord:
        """Take an outcome back; FeedbackNotFound."""
        return self._ledger.outcomes.withdraw(
            outcome_id, half_life_weeks=self._memory.half_life_weeks
        )

    def _event(self, trace: Trace, *, keep_queries: bool) -> RetrievalEvent:
        asked = trace.question
        names = asked.entities if keep_queries else map(_hashed, asked.entities)
        return RetrievalEvent(
            trace_id=trace.trace_id,
            collection=trace.collection,
            tenant=trace.tenant,
            at=trace.at,
            profile=QueryProfile(
                profile_id(trace.collection, trace.tenant, asked.text, asked.vector),
                asked.text if keep_queries else None,
                asked.lang,
                asked.intent,
                tuple(sorted(set(names))),
                asked.vector,
            ),
            stamp=trace.stamp,
            settings={
                "alpha": trace.alpha,
                "fusion": trace.fusion,
                "as_of": trace.as_of,
                "hotset": trace.hotset,
                "explored": trace.explored and trace.explored.__dict__,
                **({"cited": list(trace.cited)} if trace.cited else {}),
            },
            hits=[hit.chunk_id for hit in trace.hits],
            scores=[hit.components for hit in trace.hits[:SCORED]],
            basis=trace.basis(),
            body=trace.as_json(with_question=keep_queries) if self._is_kept(trace) else None,
        )

    def _is_kept(self, trace: Trace) -> bool:
        """An even share of all traces, the same ones each time."""
        return _digest(trace.trace_id) / 2**64 < self._traces.share


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _hashed(entity: str) -> str:
    """Says that two questions name the same, not what."""
    return f"#{_digest(entity.casefold()):016x}"
