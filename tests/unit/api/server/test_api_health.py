"""/readyz answers in time whatever hangs, with the part and the reason."""

import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from callslip.api import gunicorn_config
from callslip.api.http import draining
from callslip.api.messages.documents import Part
from callslip.api.v1.health import Checks, _part, readiness
from callslip.config import get_settings
from callslip.errors import StoreDown


@pytest.fixture
def release() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_checks_run_side_by_side_and_one_that_hangs_is_named(release: threading.Event) -> None:
    begun = time.monotonic()
    results = Checks().run(
        {"hung": release.wait, "slow": lambda: time.sleep(0.1), "sound": lambda: 7}, 0.2
    )
    assert time.monotonic() - begun < 0.5
    assert isinstance(results["hung"], StoreDown)
    assert "no answer for 0.2 s" in results["hung"].detail
    assert (results["slow"], results["sound"]) == (None, 7)


def test_a_check_that_hangs_is_not_begun_again(release: threading.Event) -> None:
    calls = []

    def hang() -> None:
        calls.append(1)
        release.wait()

    checks = Checks()
    for _ in range(3):
        assert isinstance(checks.run({"hung": hang}, 0.02)["hung"], StoreDown)
    assert len(calls) == 1
    release.set()
    while isinstance(checks.run({"hung": hang}, 0.02)["hung"], StoreDown):
        pass
    assert len(calls) <= 2


def test_an_error_of_a_check_is_its_result_whatever_it_is() -> None:
    def divide() -> float:
        return 1 / 0

    result = Checks().run({"store": divide})["store"]
    assert isinstance(result, ZeroDivisionError)
    assert _part(result) == Part(ready=False, reason="ZeroDivisionError")


def test_a_server_that_is_to_stop_says_so_and_serves_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(draining, "_shared", bytearray(1))
    monkeypatch.setenv("CALLSLIP_API__DRAIN_SECONDS", "0.2")
    monkeypatch.setattr(gunicorn_config, "get_settings", get_settings.__wrapped__)
    stopped: list[float] = []
    server = SimpleNamespace(handle_term=lambda: stopped.append(time.monotonic()))
    gunicorn_config.when_ready(server)  # type: ignore[arg-type]
    assert not draining.has_begun()
    begun = time.monotonic()
    server.handle_term()
    assert stopped[0] - begun >= 0.2
    status = readiness()
    assert not status.ready
    assert status.parts["server"].reason == "the server is about to stop"
