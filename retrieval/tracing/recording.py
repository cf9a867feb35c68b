"""Records searches in the ledger, so that feedback can refer to them (specification 003 §7)."""

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from callslip.config.sections.ranking import MemorySettings, TracesSettings
from callslip.errors import CollectionNotFound
from callslip.retrieval.tracing.trace import Trace
from callslip.stores.chunk_stats import Verdict
from callslip.stores.ledger import Ledger, OutcomeRecord, QueryProfile, RetrievalEvent
from callslip.stores.ledger.learning.searches import profile_id

SCORED = 40
"""Hits whose components are stored: as many as are reranked."""


class Learning:
    """Writes records of searches and their feedback to the ledger, after the response was sent."""

    def __init__(self, ledger: Ledger, memory: MemorySettings, traces: TracesSettings) -> None:
        self._ledger, self._memory, self._traces = ledger, memory, traces

    def over(self, ledger: Ledger) -> "Learning":
        """The same service over another ledger."""
        return Learning(ledger, self._memory, self._traces)

    def record(self, traces: Sequence[Trace]) -> None:
        """Record searches, and their traces, as the settings and the collections specify.

        Searches of a deleted collection are not recorded.
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
        by_model: bool = False,
        limited: bool = False,
    ) -> tuple[OutcomeRecord, bool]:
        """Record feedback on hits; the second value says whether the feedback is new.

        `by_model` says that a language model validated the answer.
        With `limited`, one user may give at most memory.feedback_per_hour. Raises the errors of
        `Outcomes.add`.
        """
        return self._ledger.outcomes.add(
            trace_id,
            chunk_ids,
            verdict,
            half_life_weeks=self._memory.half_life_weeks,
            user=user,
            key=key,
            by_model=by_model,
            per_hour=self._memory.feedback_per_hour if limited else None,
        )

    def withdraw(self, outcome_id: str) -> OutcomeRecord:
        """Withdraw feedback; raises FeedbackNotFound."""
        return self._ledger.outcomes.withdraw(
            outcome_id, half_life_weeks=self._memory.half_life_weeks
        )

    def _event(self, trace: Trace, *, keep_queries: bool) -> RetrievalEvent:
        question = trace.question
        names = question.entities if keep_queries else map(_hashed, question.entities)
        return RetrievalEvent(
            trace_id=trace.trace_id,
            collection=trace.collection,
            tenant=trace.tenant,
            at=trace.at,
            profile=QueryProfile(
                profile_id(trace.collection, trace.tenant, question.text, question.vector),
                question.text if keep_queries else None,
                question.lang,
                question.intent,
                tuple(sorted(set(names))),
                question.vector,
            ),
            stamp=trace.stamp,
            settings={
                "alpha": trace.alpha,
                "fusion": trace.fusion,
                "as_of": trace.as_of,
                "hotset": trace.hotset,
                "explored": trace.explored and trace.explored.__dict__,
                **trace.owned,
                **({"cited": list(trace.cited)} if trace.cited else {}),
            },
            hits=[hit.chunk_id for hit in trace.hits],
            scores=[hit.components for hit in trace.hits[:SCORED]],
            basis=trace.basis(),
            documents=list({hit.document_id: None for hit in trace.hits}) if trace.owned else (),
            body=trace.as_json(with_question=keep_queries) if self._is_sampled(trace) else None,
        )

    def _is_sampled(self, trace: Trace) -> bool:
        """Whether a trace is in the sample; the choice is uniform and deterministic."""
        return _digest(trace.trace_id) / 2**64 < self._traces.share


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _hashed(entity: str) -> str:
    """A hash that shows whether two questions name the same entities, but not which."""
    return f"#{_digest(entity.casefold()):016x}"
