"""Maintenance of the chunk memory: decay, mean vectors (centres) of questions, retention."""

import time

from celery import shared_task

from callslip.retrieval.ranking.memory import FEWEST_QUESTIONS
from callslip.tasks.composition import current
from callslip.tasks.maintenance import DAY_SECONDS
from callslip.tasks.shared.locks import alone

EVERY_SECONDS = 3600.0
"""Seconds between two runs. Only decay of a week or more is written, so a machine may be off."""

LONGEST_SECONDS = 900.0


@shared_task(name="maintenance.memory")
def maintain_memory() -> None:
    """Write the decay of a week or more, compute the centres again, and delete old records."""
    context = current()
    settings, ledger = context.settings, context.ledger
    with alone(context.broker, "memory", LONGEST_SECONDS) as lock:
        if lock is None:
            return
        now = time.time()
        ledger.outcomes.weigh_anew(settings.memory.half_life_weeks, now)  # of an older Callslip
        ledger.memory.fade(settings.memory.half_life_weeks)
        ledger.memory.centre(FEWEST_QUESTIONS)
        before = now - settings.maintenance.keep_days * DAY_SECONDS
        ledger.searches.trim(before, settings.memory.max_searches)
        ledger.outcomes.trim(before)
        traces = settings.traces
        ledger.searches.trim_traces(now - traces.keep_hours * 3600.0, traces.max_rows)
