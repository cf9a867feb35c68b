"""Runs a seeded schedule of faults over a stream of documents, and looks at what became of them."""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from statistics import median

import httpx
import redis
from documents import REASONS, Documents, Expected
from faults import Faults
from outcome import Outcome
from processes import waits_until
from stack import Stack

from callslip.errors import StartError
from callslip.stores.blobs import Blobs
from callslip.tasks.shared import store_health
from callslip.workers.store_checks import DOUBTS

HEALTHY_SECONDS = 240.0
"""The longest time from the last fault of a round until all is well."""

LOOK_SECONDS = 0.25

CLEAN_SECONDS = 240.0
"""The longest time until the last removals are done, once all else is."""


class Campaign:
    """One run; `times` has the seconds from a fault until all was well, by its kind."""

    def __init__(
        self,
        stack: Stack,
        documents: Documents,
        faults: Faults,
        seed: int,
        say: Callable[[str], None],
    ) -> None:
        self.times: defaultdict[str, list[float]] = defaultdict(list)
        self._stack, self._documents, self._faults = stack, documents, faults
        self._random = random.Random(f"rounds {seed}")
        self._say = say
        self._http = httpx.Client(timeout=10, trust_env=False)

    def run(self, rounds: Sequence[Sequence[str]], operations: int) -> None:
        """Make the faults of each round, and wait until all is well again.

        The stream's `operations` are divided among the rounds. Fails with what is stuck.
        """
        self._documents.follow(self._stack.url)
        with self._http, self._documents.running():
            self._healthy("before the first fault")
            for number, kinds in enumerate(rounds, 1):
                before = operations * (number - 1) // len(rounds)
                self._documents.add(operations * number // len(rounds) - before)
                begun = [(kind, self._begin(kind)) for kind in kinds]
                self._faults.wait()
                well_at = self._healthy(f"after {', '.join(kinds)}")
                for kind, at in begun:
                    self.times[kind].append(well_at - at)
                self._say(
                    f"{number}/{len(rounds)}: well after {well_at - begun[-1][1]:.1f} s;"
                    f" {len(self._documents.accepted)} documents"
                )
            self._healthy("after the last fault")

    def _begin(self, kind: str) -> float:
        at, until = time.monotonic(), time.monotonic() + self._random.uniform(0, 1.5)
        details = self._faults.make(kind)
        self._say(f"  {kind} {details}".rstrip())
        while time.monotonic() < until:
            self._faults.remember_messages()
            time.sleep(0.05)
        return at

    def _healthy(self, when: str) -> float:
        """Wait until all is well; when that was. Fails with the problem and the logs."""
        why = ""
        until = time.monotonic() + HEALTHY_SECONDS
        while why := self._problem():
            if time.monotonic() > until:
                raise AssertionError(f"{when}: {why}\n{self._stack.tails()}")
            self._faults.remember_messages()
            time.sleep(LOOK_SECONDS)
        return time.monotonic()

    def _problem(self) -> str:
        """What is not well yet, the cheapest checks first; empty if all is well."""
        if not self._documents.are_sent():
            return "operations are not answered"
        try:
            run = self._stack.running
            ready = self._http.get(f"{run.api_url}/readyz")
            if ready.status_code != 200:
                parts = ready.json()["parts"].items()
                return f"/readyz: {[(n, p['reason']) for n, p in parts if p['reason']]}"
            with redis.Redis.from_url(run.broker_url, socket_timeout=2) as broker:
                health = store_health.read(broker, "chroma")
                if health is None or health.reason or health.started != run.parts["chroma"].started:
                    return "the store was not probed since its start"
                if broker.exists(DOUBTS):
                    return "the store is not audited"
            if stuck := self._unsettled():
                return stuck
            query = {
                "collection": self._documents.collection,
                "query": f"a receipt {time.monotonic_ns()}",
            }
            found = self._http.post(f"{run.api_url}/v1/search", json=query)
            if found.status_code != 200 or found.json()["partial"]:
                return f"a search: {found.status_code} {found.text[:500]}"
        except (httpx.TransportError, redis.RedisError, StartError, AssertionError) as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def _unsettled(self) -> str:
        """A document that is neither live, failed nor removed; empty if there is none."""
        url = f"{self._stack.url}/v1/collections/{self._documents.collection}/documents"
        states = self._http.get(url, params={"limit": 1}).json()["states"]
        waiting = {s: n for s, n in states.items() if s not in ("live", "failed", "removed") and n}
        return f"documents are {waiting}" if waiting else ""


def wrong_documents(outcome: Outcome, documents: Documents) -> list[str]:
    """What is not as it must be at the end; empty if all is."""
    wrong = list(documents.wrong)
    expected_ids: set[str] = set()
    live: set[str] = set()
    for expected in documents.accepted:
        if why := _wrong_state(outcome, expected):
            wrong.append(f"{expected.name}: {why}")
        elif not expected.deleted and not expected.poison:
            live.add(expected.document_id)
            expected_ids |= outcome.chunk_ids(expected.document_id, expected.text)
    halves: dict[str, set[str]] = {}

    def stored() -> bool:
        halves.update(outcome.store.chunk_ids(outcome.collection))
        return all(ids == expected_ids for ids in halves.values())

    waits_until(stored, CLEAN_SECONDS)
    for half, ids in halves.items():
        if lost := expected_ids - ids:
            wrong.append(f"{half}: {len(lost)} chunks lost")
        if left := ids - expected_ids:
            wrong.append(f"{half}: {len(left)} chunks of nothing that is live")
    if (entries := outcome.store.count(outcome.collection)) != len(expected_ids):
        wrong.append(f"keywords: {entries} entries for {len(expected_ids)} chunks")
    if outcome.store.document_ids(outcome.collection) != live:
        wrong.append("the documents in the store are others")
    gone = {e.document_id for e in documents.accepted if e.deleted}
    if kept := gone & Blobs(outcome.stack.settings.blobs_url).document_ids():
        wrong.append(f"{len(kept)} deleted documents have files")
    return wrong


def _wrong_state(outcome: Outcome, expected: Expected) -> str:
    """Why a document is not as it must be; empty if it is."""
    record = outcome.ledger.documents.get(expected.document_id)
    if expected.deleted:
        removed = lambda: outcome.ledger.documents.get(expected.document_id).removed_at  # noqa: E731
        return "" if waits_until(removed, CLEAN_SECONDS) else "it is deleted and not removed"
    if expected.poison:
        reason = record.newest.failure.type if record.newest.failure else record.state
        return "" if reason in REASONS[expected.poison] else f"{expected.poison}: {reason}"
    if record.state != "live":
        return f"{record.state}: {record.newest.failure}"
    if record.live_version != record.newest.version:
        return f"version {record.live_version} is live, {record.newest.version} is the newest"
    with suppress(AssertionError):
        outcome.assert_whole(expected.document_id, expected.text)
        return ""
    return "its chunks are not exactly those of its newest text"


def report(campaign: Campaign, documents: Documents, faults: Faults) -> str:
    """The figures of a run, as lines of a table."""
    lines = [f"{'fault':28} {'count':>5} {'p50 s':>7} {'max s':>7}"]
    for kind in sorted(campaign.times):
        times = campaign.times[kind]
        lines.append(f"{kind:28} {len(times):5} {median(times):7.1f} {max(times):7.1f}")
    times = [t for some in campaign.times.values() for t in some]
    lines.append(f"{'all':28} {len(times):5} {median(times):7.1f} {max(times):7.1f}")
    deleted = sum(e.deleted for e in documents.accepted)
    poison = sum(bool(e.poison) for e in documents.accepted)
    lines.append(
        f"{len(documents.accepted)} documents, {documents.submitted} submissions,"
        f" {deleted} deleted, {poison} poison; {faults.torn_files} files torn by power losses;"
        f" searches {dict(documents.searches.most_common())}"
    )
    return "\n".join(lines)
