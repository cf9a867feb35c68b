"""/healthz and /readyz"""

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress

import redis
from flask import Response
from flask_openapi3 import APIBlueprint, Tag

from callslip import __version__
from callslip.api.http import draining
from callslip.api.http.context import current
from callslip.api.http.json_response import answer
from callslip.api.messages import documents
from callslip.errors import CallslipError, StoreDown
from callslip.tasks.composition import Context
from callslip.tasks.shared import store_health
from callslip.workers.presence import consumers

CHECK_SECONDS = 1.5
"""Seconds after which a check without a result counts as failed; /readyz answers within 2 s."""

Check = Callable[[], object]

blueprint = APIBlueprint("health", __name__, abp_tags=[Tag(name="health")])


@blueprint.get("/healthz", responses={200: documents.Health})
def healthz() -> Response:
    """The server is alive."""
    return answer(documents.Health(status="ok", version=__version__))


@blueprint.get("/readyz", responses={200: documents.Readiness, 503: documents.Readiness})
def readyz() -> Response:
    """Whether the server can do new work: every part answers, and every queue has a worker."""
    status = readiness()
    return answer(status, 200 if status.ready else 503)


def readiness() -> documents.Readiness:
    """Each part, with the reason if it is not ready. Takes CHECK_SECONDS at most."""
    if draining.has_begun():
        part = documents.Part(ready=False, reason="the server is about to stop")
        return documents.Readiness(ready=False, parts={"server": part})
    context = current()
    checks: dict[str, Check] = {
        "ledger": lambda: context.ledger.collections.all(),
        "blobs": lambda: context.blobs.check(),
        "broker": lambda: consumers(context.broker),
        "probes": lambda: _probed(context),  # the part of the broker says so if it is away
    }
    checks |= {f"store {kind}": store.ping for kind, store in context.stores().items()}
    results = _checks.run(checks)
    probed, counts = results.pop("probes"), results["broker"]
    parts = {name: _part(result) for name, result in results.items()}
    for kind, fault in probed.items() if isinstance(probed, dict) else ():
        parts[f"store {kind}"] = documents.Part(ready=False, reason=fault)
    for queue, count in counts.items() if isinstance(counts, dict) else ():
        reason = None if count else f"no worker reads the queue {queue!r}"
        parts[f"queue {queue}"] = documents.Part(ready=count > 0, reason=reason)
    return documents.Readiness(ready=all(p.ready for p in parts.values()), parts=parts)


def _probed(context: Context) -> dict[str, str]:
    with suppress(redis.RedisError):
        return store_health.faults(context.broker, context.settings.maintenance.probe_seconds)
    return {}


class Checks:
    """Runs checks side by side, each in a thread.

    A check that hangs is not begun again before it ends, so that requests do not pile up threads.
    """

    def __init__(self) -> None:
        self._running: dict[str, tuple[float, Future[object]]] = {}
        self._lock = threading.Lock()

    def run(self, checks: Mapping[str, Check], seconds: float = CHECK_SECONDS) -> dict[str, object]:
        """The result of each check by name, or the error that it raised.

        A check without a result after `seconds` has a StoreDown that says since when it hangs.
        """
        with self._lock:
            begun = {name: self._begin(name, check) for name, check in checks.items()}
        wait([future for _, future in begun.values()], seconds)
        return {name: _result(at, future) for name, (at, future) in begun.items()}

    def _begin(self, name: str, check: Check) -> tuple[float, Future[object]]:
        known = self._running.get(name)
        if known is not None and not known[1].done():
            return known
        future: Future[object] = Future()
        self._running[name] = time.monotonic(), future
        threading.Thread(target=_complete, args=(future, check), daemon=True).start()
        return self._running[name]


_checks = Checks()


def _complete(future: "Future[object]", check: Check) -> None:
    try:
        future.set_result(check())
    except Exception as error:
        future.set_exception(error)


def _result(begun: float, future: "Future[object]") -> object:
    if not future.done():
        return StoreDown(f"no answer for {time.monotonic() - begun:.1f} s")
    try:
        return future.result()
    except Exception as error:
        return error


def _part(result: object) -> documents.Part:
    if isinstance(result, CallslipError):
        return documents.Part(ready=False, reason=result.detail)
    if isinstance(result, Exception):
        return documents.Part(ready=False, reason=type(result).__name__)
    return documents.Part(ready=True)
