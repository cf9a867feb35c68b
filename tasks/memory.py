"""Upkeep of what is learned: decay, the centre of each collection's questions, retention."""

import time

from celery import shared_task

from config import get_settings
from retrieval.memory import FEWEST_QUESTIONS
from tasks.maintenance import DAY_SECONDS, alone
from tasks.process import ledger

EVERY_SECONDS = 3600.0
"""How often it is looked; a week is written down a week later, whenever the machine ran."""

LONGEST_SECONDS = 900.0


@shared_task(name="maintenance.memory")
def tend_memory() -> None:
    """Write a week's decay down, take the centres anew, forget what is old."""
    settings = get_settings()
    with alone("memory", LONGEST_SECONDS) as lock:
        if lock is None:
            return
        now = time.time()
        ledger().memory.fade(settings.memory.half_life_weeks)
        ledger().memory.centre(FEWEST_QUESTIONS)
        before = now - settings.maintenance.keep_days * DAY_SECONDS
        ledger().searches.trim(before, settings.memory.max_searches)
        ledger().outcomes.trim(before)
        kept = settings.traces
        ledger().searches.trim_traces(now - kept.keep_hours * 3600.0, kept.max_rows)
