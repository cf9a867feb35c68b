"""The search worker is ready before it reads its queue."""

import subprocess
import sys

import pytest

PROGRAM = """
import gc
from callslip.workers import search

class Ready:
    embedder = analyzer = property(lambda self: self)
    query = analyze = staticmethod(print)

search.current = lambda: type("Context", (), {"resources": Ready()})
search._warm_up()
assert gc.get_freeze_count() > 10_000
assert gc.get_threshold()[0] == search.COLLECTED_EVERY
"""


@pytest.mark.long
def test_the_warm_worker_collects_seldom_and_never_its_models() -> None:
    environment = {"CALLSLIP_BROKER__URL": "redis://127.0.0.1:1/0"}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True)
