"""Runs one step of documents: claim the steps, run them, record the results. Independent of Celery.

The output of a step is an artifact. Its name is the hash of the step's input and of the settings
that affect the step. If the artifact already exists, it is not computed again.
"""

import logging
import math
import os
import random
import socket
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import repeat
from typing import Any, Generic, Literal, TypeVar, cast

from callslip.errors import (
    CallslipError,
    DiskFull,
    FileMissing,
    InternalError,
    LeaseLost,
    PermanentError,
    StoreDown,
    TransientError,
)
from callslip.ingestion import artifacts, attachments
from callslip.ingestion.artifacts import Artifact
from callslip.ingestion.context import StepContext
from callslip.ingestion.steps.text import (
    cut_chunks,
    enrich_chunks,
    enrich_together,
    extract_text,
    find_sections,
)
from callslip.ingestion.steps.upsert import upsert_chunks, upsert_together
from callslip.ingestion.steps.vectors import embed_chunks, embed_together
from callslip.ingestion.steps.work import Work, name_of
from callslip.stores.blobs import BlobMissing, Blobs
from callslip.stores.disk import NO_ROOM, is_disk_full
from callslip.stores.ledger import Claim, Finished, Refusal, Step

MAX_WAIT_SECONDS = 60.0
"""The longest wait between two attempts of a step."""

MAX_LASTING_WAIT_SECONDS = 10.0
"""The longest wait if the error is a store's or a disk's, which is soon well again.

The wait doubles with each attempt that the step ever had, repairs included: without this limit a
document that was repaired often would wait a minute for each fault that lasts a second.
"""

MOST_DOUBLINGS = 30
"""The maximum number of doublings of the wait. A step's attempts are never reset, and 2.0**1024
overflows."""

MOST_WARNINGS = 100
"""The maximum number of warnings that are recorded for a step."""

_MAKERS: dict[Step, tuple[Callable[[Work], Any], Artifact[Any]]] = {
    "extract": (extract_text, artifacts.EXTRACTED),
    "sectionize": (find_sections, artifacts.SECTIONS),
    "chunk": (cut_chunks, artifacts.CHUNKS),
    "enrich": (enrich_chunks, artifacts.ENRICHED),
    "embed": (embed_chunks, artifacts.VECTORS),
}

_TOGETHER: dict[Step, Callable[[Sequence[Work]], Mapping[int, Any]]] = {
    "enrich": enrich_together,
    "embed": embed_together,
    "upsert": upsert_together,
}
"""What steps do for several documents at once; the results have the numbers of the documents."""

Next = Literal["go on", "stop"]

log = logging.getLogger(__name__)

R = TypeVar("R")


@dataclass(frozen=True)
class StepReport:
    """How an attempt of a step ended.

    done: the step is finished; retry: a passing error, with the `wait` in seconds; failed: the
    version has failed for good; dropped: another worker has the step, or the version is gone.
    `error` is None if the step is done.
    """

    claim: Claim
    outcome: Literal["done", "retry", "failed", "dropped"]
    seconds: float
    error: CallslipError | None = None
    wait: float | None = None
    cause: Exception | None = None


def run_step(
    context: StepContext,
    step: Step,
    document_id: str,
    version: int,
    report: Callable[[StepReport], None] = lambda report: None,
) -> Next:
    """Run one step of one version, as `run_steps` does."""
    return run_steps(context, step, [(document_id, version)], report)


def run_steps(
    context: StepContext,
    step: Step,
    versions: Sequence[tuple[str, int]],
    report: Callable[[StepReport], None] = lambda report: None,
) -> Next:
    """Run one step of each version that this worker can claim, and report how each ended.

    One transaction claims them, and one records the results of all. Each version has its own
    attempt, error and result: one that fails leaves the others alone. Returns "go on" if the next
    step of any of them may follow, else "stop".
    """
    settings = context.settings.ingest
    claims = context.ledger.leases.claim_all(
        versions,
        step,
        worker=f"{socket.gethostname()}:{os.getpid()}",
        lease_seconds=settings.lease_seconds,
        max_crashes=settings.max_attempts,
    )
    done = [isinstance(claim, Refusal) and claim.reason == "done" for claim in claims]
    own = [claim for claim in claims if not isinstance(claim, Refusal)]
    for ended in _attempts(context, own):
        report(ended)
        done.append(ended.outcome == "done")
    return "go on" if any(done) else "stop"


def _attempts(context: StepContext, claims: Sequence[Claim]) -> list[StepReport]:
    leases = context.ledger.leases
    collection_of = cache(context.ledger.collections.get)
    with leases.keep(claims) as renewed:
        works = [
            Work(context, claim, lease, collection_of)
            for claim, lease in zip(claims, renewed, strict=True)
        ]
        common = _in_common(works)
        if claims and claims[0].step == "upsert":
            store = partial(_output, upsert_chunks, common)
            stored = [_tried(work, store, common.seconds_of(work)) for work in works]
            return _recorded(context, stored, leases.go_live_all)
        return _recorded(context, _finished(context, works, common), leases.finish_all)


@dataclass(frozen=True)
class _Common:
    """What a step made for several documents at once.

    `outputs` has the output, or the error of all, by document id; `seconds` is the time of each.
    """

    outputs: Mapping[str, Any]
    seconds: float

    def seconds_of(self, work: Work) -> float:
        return self.seconds if work.version.document_id in self.outputs else 0.0


def _in_common(works: Sequence[Work]) -> _Common:
    """Do what the step can do for several documents at once: for those that may share it.

    What is left out is done for each document alone, which finds the error of the one.
    """
    started, outputs = time.perf_counter(), dict[str, Any]()
    scopes: dict[tuple[str, str], list[Work]] = {}
    for work in works:
        if _may_join(work):
            scopes.setdefault((work.version.collection, work.version.tenant), []).append(work)
    for some in scopes.values():
        if len(some) > 1:
            ids = [work.version.document_id for work in some]
            try:
                made = _TOGETHER[some[0].claim.step](some)
                outputs |= {ids[number]: output for number, output in made.items()}
            except Exception as error:
                if isinstance(error, TransientError) and not isinstance(error, LeaseLost):
                    outputs |= dict.fromkeys(ids, error)
                    continue
                kind = type(error).__name__  # its message may contain text of a document
                log.warning("%d documents are done one by one: %s", len(some), kind)
    return _Common(outputs, (time.perf_counter() - started) / max(1, len(outputs)))


def _may_join(work: Work) -> bool:
    """Tell whether other documents may share the step with this one.

    Only a first attempt may share it. A later version shares only the upsert, because the other
    steps use the results of the version before it.
    """
    step, first = work.claim.step, work.version.version == 1
    return step in _TOGETHER and work.claim.token == 1 and (first or step == "upsert")


def _output(make: Callable[[Work], R], common: _Common, work: Work) -> R:
    """Return what was made in common, or make it for this document alone."""
    output = common.outputs.get(work.version.document_id)
    if isinstance(output, TransientError):
        raise output
    return make(work) if output is None else cast("R", output)


@dataclass(frozen=True)
class _Made:
    """The output of a step; its artifact's name, and the content that is not stored yet."""

    output: Any
    name: str
    content: bytes | None


def _finished(
    context: StepContext, works: Sequence[Work], common: _Common
) -> list["_Tried[Finished]"]:
    """Make the artifacts of a step, and store all of them at once."""
    make = partial(_made, common)
    made = [_tried(work, make, common.seconds_of(work)) for work in works]
    new = {
        (each.claim.document_id, each.result.name): each.result.content
        for work, each in zip(works, made, strict=True)
        if isinstance(each.result, _Made) and each.result.content is not None
        if not work.lease.is_lost  # write nothing after a deletion of the document
    }
    unwritten = context.blobs.write_all(new)
    return [
        _tried(work, partial(_result, each.result, unwritten), each.seconds)
        if isinstance(each.result, _Made)
        else _Tried(each.claim, each.seconds, each.result)
        for work, each in zip(works, made, strict=True)
    ]


def _made(common: _Common, work: Work) -> _Made:
    """Make the output of a step, or read it if it is stored."""
    context, claim = work.context, work.claim
    make, kind = _MAKERS[claim.step]
    name = name_of(work)
    if context.blobs.exists(claim.document_id, name):
        known = kind.load(context.blobs.read(claim.document_id, name))
        if claim.step != "extract" or not known.attachments:  # an artifact has no attachments
            return _Made(known, name, None)
    output = _output(make, common, work)
    return _Made(output, name, kind.dump(output))


def _result(made: _Made, unwritten: Mapping[tuple[str, str], Exception], work: Work) -> Finished:
    claim, output, (_, kind) = work.claim, made.output, _MAKERS[work.claim.step]
    work.lease.check()
    if error := unwritten.get((claim.document_id, made.name)):
        raise error
    if claim.step == "extract":
        attachments.bring_in(work, output)
        if claim.record.corrections:
            left_out = [each.left_out for each in output.corrections]
            work.context.ledger.corrections.settle(claim, left_out)
    counts = kind.counts(output) | work.counts
    return Finished(claim, made.name, counts, kind.warnings(output)[:MOST_WARNINGS])


@dataclass(frozen=True)
class _Tried(Generic[R]):
    """A step whose work has ended: its result to record, or the report of an error."""

    claim: Claim
    seconds: float
    result: R | StepReport


def _tried(work: Work, do: Callable[[Work], R], spent: float) -> _Tried[R]:
    """Do the work of a step, for which `spent` seconds were needed before."""
    started = time.perf_counter() - spent
    try:
        result: R | StepReport = do(work)
    except Exception as error:
        seconds = time.perf_counter() - started
        result = _ended_by(work.context, work.claim, error, seconds)
    return _Tried(work.claim, time.perf_counter() - started, result)


def _recorded(
    context: StepContext,
    tried: Sequence[_Tried[R]],
    record: Callable[[Sequence[R]], Sequence[LeaseLost | None]],
) -> list[StepReport]:
    """Record the results in one transaction; return the report of each step in order."""
    results = [each.result for each in tried if not isinstance(each.result, StepReport)]
    unrecorded: Iterator[Exception | None]
    try:
        unrecorded = iter(record(results) if results else ())
    except TransientError as error:
        unrecorded = repeat(error)
    except Exception:  # perhaps because of one of them
        unrecorded = iter([_record_alone(record, result) for result in results])
    reports = []
    for each in tried:
        if isinstance(each.result, StepReport):
            reports.append(each.result)
        elif (why := next(unrecorded)) is None:
            reports.append(StepReport(each.claim, "done", each.seconds))
        else:
            reports.append(_ended_by(context, each.claim, why, each.seconds))
    return reports


def _record_alone(
    record: Callable[[Sequence[R]], Sequence[LeaseLost | None]], result: R
) -> Exception | None:
    try:
        return record([result])[0]
    except Exception as error:
        return error


def _ended_by(context: StepContext, claim: Claim, error: Exception, seconds: float) -> StepReport:
    """Record the error that ended a step; one that passes puts the step back.

    A step of which nothing can be recorded is dropped: it is due again when its lease ends.
    """
    leases = context.ledger.leases
    try:
        if isinstance(error, LeaseLost):
            raise error
        if isinstance(error, TransientError):
            return _put_back(context, claim, error, seconds)
        if isinstance(error, BlobMissing):
            return _put_back(context, claim, _missing(context.blobs), seconds)
        if is_disk_full(error):
            return _put_back(context, claim, DiskFull(NO_ROOM), seconds)
        if isinstance(error, PermanentError):
            leases.fail(claim, error)
            return StepReport(claim, "failed", seconds, error)
        internal = InternalError(f"{type(error).__name__} at {_location(error)}")
        leases.fail(claim, internal)
        return StepReport(claim, "failed", seconds, internal, cause=error)
    except TransientError as lost:
        with suppress(StoreDown):
            leases.drop(claim)
        return StepReport(claim, "dropped", seconds, lost)


def _missing(blobs: Blobs) -> TransientError:
    """The error for a file that is missing: StoreDown if the blob store has no file at all.

    A file may be missing for a moment: where its upload ends, or another folder was mounted.
    """
    try:
        if not blobs.is_empty():
            return FileMissing("the blob store lacks a file of this version")
    except StoreDown as down:
        return down
    return StoreDown(
        "the blob store has no file of any document",
        hint="Mount its folder, or name the bucket that has the files: blobs.url in the settings.",
    )


def _put_back(
    context: StepContext, claim: Claim, error: TransientError, seconds: float
) -> StepReport:
    """Put the step back until its next attempt; a step that failed for too long fails for good."""
    lasting = isinstance(error, StoreDown | DiskFull)
    wait = _wait(context, claim, MAX_LASTING_WAIT_SECONDS if lasting else MAX_WAIT_SECONDS)
    # What Callslip itself needs comes back.
    give_up = math.inf if lasting else context.settings.ingest.retry_for_seconds
    if context.ledger.leases.release(claim, error, wait=wait, give_up=give_up):
        return StepReport(claim, "failed", seconds, error)
    return StepReport(claim, "retry", seconds, error, wait)


def _wait(context: StepContext, claim: Claim, most: float) -> float:
    """Seconds until the next attempt of a step, about `most` at most."""
    doublings = min(claim.token - 1, MOST_DOUBLINGS)
    wait = min(context.settings.ingest.retry_base_seconds * 2.0**doublings, most)
    return wait * random.uniform(0.75, 1.25)  # noqa: S311 - jitter, so that retries do not coincide


def _location(error: Exception) -> str:
    """The line of an unexpected error. Its message may contain text of a document."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{os.path.basename(frame.filename)}:{frame.lineno}"  # noqa: PTH119
