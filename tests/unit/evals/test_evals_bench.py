"""What the benchmark counts and prints."""

import os
import subprocess
import sys

import pytest

from benchmarks.fresh_texts import FreshTexts
from benchmarks.speed.latency import Latency, percentiles
from benchmarks.speed.memory import by_role, unit
from benchmarks.speed.processor import seconds_by_role, spent
from benchmarks.speed.throughput import Kind, Throughput
from callslip.models.e5.tokens import Tokenizer
from callslip.workers.supervision.runfile import Process, RunFile


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    return Tokenizer(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def texts(tokenizer: Tokenizer) -> FreshTexts:
    return FreshTexts(tokenizer)


@pytest.mark.long
def test_documents_are_as_long_as_asked_and_never_the_same(
    texts: FreshTexts, tokenizer: Tokenizer
) -> None:
    documents = [texts.document(300) for _ in range(10)]
    assert len(set(documents)) == 10
    assert all(290 <= tokenizer.count(document) <= 500 for document in documents)


def test_texts_are_in_both_languages(texts: FreshTexts) -> None:
    queries = [texts.query() for _ in range(60)]
    assert any("가" <= letter <= "힣" for query in queries for letter in query)
    assert any(query.isascii() for query in queries)


def test_percentiles_are_of_all_values() -> None:
    assert percentiles([float(n) for n in range(101)]) == (50, 95, 99)


def test_the_sum_of_the_parts_is_taken_per_search() -> None:
    found = Latency("idle")
    found.add(9.0, {"embed": 1.0, "legs": 2.0})
    found.add(9.0, {"embed": 5.0, "legs": 1.0, "narrow": 4.0})  # a stage of some searches
    assert found.parts == [3, 10]
    assert found.stages == {"embed": [1, 5], "legs": [2, 1], "narrow": [4]}


def test_the_ratio_is_taken_per_round() -> None:
    found = Throughput(Kind("short", 300), documents=8, chain=[1.0, 3.0], alone=[2.0, 4.0])
    assert found.ratios == [0.5, 0.75]


def test_memory_is_told_of_every_part() -> None:
    me = Process.of(os.getpid())
    found = by_role(RunFile(me, "", "", "", {"api": me}))
    assert [each.role for each in found] == ["supervisor", "api"]
    assert all(each.megabytes[0] > 1 for each in found)
    assert unit() in ("PSS", "RSS")


def test_processor_time_is_of_every_part_and_of_processes_that_ended() -> None:
    me = Process.of(os.getpid())
    run = RunFile(me, "", "", "", {"api": me})
    before = seconds_by_role(run)
    burn = "import time\nwhile time.process_time() < .4: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    took = spent(before, seconds_by_role(run), 2)
    assert took.keys() == {"supervisor", "api"}
    assert took["api"] >= 0.15  # .4 s for two units, in ticks of the kernel
    assert took["supervisor"] < took["api"]
