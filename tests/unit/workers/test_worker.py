"""The program that runs the Celery worker of a role."""

import socket
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from callslip.config.settings import Settings
from callslip.tasks.queues import BY_ROLE, Role
from callslip.workers import worker
from callslip.workers.commands import argv

POOLS: dict[Role, dict[str, Any]] = {
    "ingest": {"pool": "prefork", "concurrency": 3},
    "maintenance": {"pool": "threads", "concurrency": 4, "beat": True},
}


class Started:
    """What takes the place of Celery's worker."""

    def __init__(self, **options: Any) -> None:
        self.options = options
        self.exitcode: int | None = None

    def start(self) -> None:
        self.exitcode = 7


@pytest.mark.parametrize("role", POOLS)
def test_a_role_has_its_queues_and_its_pool(role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Started] = []

    def make(**options: Any) -> Started:
        made.append(Started(**options))
        return made[-1]

    settings = Settings.model_validate({"ingest": {"concurrency": 3}, "log": {"level": "WARNING"}})
    monkeypatch.setattr(worker, "get_settings", lambda: settings)
    module = SimpleNamespace(app=SimpleNamespace(Worker=make))
    monkeypatch.setitem(sys.modules, f"callslip.workers.{role}", module)
    assert worker.main(role) == 7
    [started] = made
    assert started.options == POOLS[role] | {
        "hostname": f"{role}@{socket.gethostname()}",
        "queues": BY_ROLE[role],
        "loglevel": "WARNING",
        "quiet": True,
        "without_gossip": True,
        "without_mingle": True,
        "without_heartbeat": True,
    }


def test_the_threads_are_those_of_the_settings() -> None:
    settings = Settings.model_validate({"search": {"threads": 5}, "agent": {"threads": 6}})
    assert worker.options_of("search", settings) == {"pool": "threads", "concurrency": 5}
    assert worker.options_of("answer", settings) == {"pool": "threads", "concurrency": 6}


def test_the_command_line_of_a_worker_names_the_role() -> None:
    command = [sys.executable, "-m", "callslip.workers.worker", "search"]
    assert argv("search", Settings()) == command
