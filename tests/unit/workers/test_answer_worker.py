"""The answer worker loads its models while it reads its queue already."""

import subprocess
import sys

import pytest

PROGRAM = """
import threading
from celery.signals import worker_ready
from celery.worker import state
from callslip.workers import answer

class Broken:
    def __getattr__(self, name):
        raise OSError("no such model")

class Works:
    reader = None
    agent = resources = embedder = analyzer = property(lambda self: self)
    query = analyze = staticmethod(print)

for context, stop in ((Works(), None), (Broken(), 1)):
    answer.current = lambda: context
    worker_ready.send(sender=None)
    for thread in threading.enumerate():
        if thread.name == "warm-up":
            thread.join()
    assert state.should_stop is stop, state.should_stop
"""


@pytest.mark.long
def test_a_worker_that_cannot_load_its_models_logs_why_and_stops() -> None:
    environment = {"CALLSLIP_BROKER__URL": "redis://127.0.0.1:1/0"}
    command = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split("\n")[:2] == ["warm", "warm 준비"]
    assert "no such model" in ran.stderr
