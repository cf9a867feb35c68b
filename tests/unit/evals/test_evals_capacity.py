"""The capacity model: its queueing network, its plans and its command."""

import json
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from benchmarks.capacity import __main__ as command
from benchmarks.capacity import sleeping
from benchmarks.capacity.model import Workload, plan
from benchmarks.capacity.parameters import SOURCES, Parameters, from_bench, replaced
from benchmarks.capacity.queueing import throughput
from benchmarks.capacity.simulate import run_valkey
from benchmarks.machine import Figure, Record
from callslip.errors import EvaluationError


def test_few_workers_hardly_wait_and_many_wait_for_the_slowest_server() -> None:
    assert throughput(1, 10, (0.5, 0.1)) == pytest.approx(1 / 10.6)
    assert throughput(5, 10, (0.01,)) == pytest.approx(5 / 10.01, rel=0.01)
    assert throughput(1000, 10, (0.5, 0.1)) == pytest.approx(1 / 0.5, rel=0.01)


def test_the_throughput_of_two_workers_is_that_of_a_calculation_by_hand() -> None:
    # One worker: 1/4 a second, and 1/4 of it in the queue. So the second waits 1 × (1 + 1/4).
    assert throughput(2, 3, (1,)) == pytest.approx(2 / (3 + 1.25))


def test_every_parameter_has_a_source() -> None:
    assert SOURCES.keys() == {field.name for field in fields(Parameters)}


def test_a_small_collection_needs_one_host_and_nothing_changes() -> None:
    found = plan(Workload(2000), Parameters())
    assert (found.hosts, found.ledger, found.store_nodes) == (1, "SQLite", 1)
    assert found.short == []


def test_a_billion_chunks_need_a_cluster_and_another_ledger() -> None:
    found = plan(Workload(200_000_000), Parameters())
    assert found.bottleneck.name == "store: memory"
    assert found.ledger == "PostgreSQL"
    assert found.store_nodes >= 10
    assert {"ledger: SQLite", "embedder and chain", "audit: memory"} <= {
        each.name for each in found.short
    }


def test_hosts_share_no_sqlite() -> None:
    at = replaced(Parameters(), {"transactions_per_document": "1"})
    found = plan(Workload(20_000_000), at)
    assert (found.hosts > 1, found.ledger) == (True, "PostgreSQL")
    assert "ledger: SQLite" not in {each.name for each in found.short}


def test_many_searches_need_another_store_than_chroma() -> None:
    found = plan(Workload(2000, searches_per_s=100), Parameters())
    assert (found.store, found.store_nodes) == ("one Weaviate or CrateDB", 1)
    assert "keyword index" in {each.name for each in found.short}


def test_workers_follow_the_pace_and_the_searches() -> None:
    at = replaced(Parameters(), {"embed_core_s_per_chunk": "1", "search_core_s": "0.1"})
    found = plan(Workload(8640, chunks_per_document=10, days=0.1, searches_per_s=13), at)
    per_document = at.chain_core_s_per_document + 10 * (1 + at.chain_core_s_per_chunk)
    assert found.ingest_processes == -(-per_document // at.fill)
    assert found.search_workers == 2
    assert found.first_cost == pytest.approx(8640 * per_document / 3600 * at.core_hour)
    assert found.bottleneck.name == "embedder and chain"


def test_changes_set_the_pace_where_they_are_more_than_the_first_ingestion() -> None:
    assert Workload(864, days=1).documents_per_s == pytest.approx(0.01)
    assert Workload(864, days=1, changes_per_day=2880).documents_per_s == pytest.approx(0.1)


def test_documents_that_share_messages_and_transactions_spare_broker_and_ledger() -> None:
    work = Workload(200_000_000)
    alone, together = (
        {each.name: each.load for each in plan(work, at).resources}
        for at in (
            Parameters(),
            replaced(
                Parameters(), {"messages_per_document": "0.6", "transactions_per_document": "1.75"}
            ),
        )
    )
    assert together["ledger: PostgreSQL"] == pytest.approx(alone["ledger: PostgreSQL"] / 10)
    assert together["broker"] < alone["broker"] / 5


def test_what_a_benchmark_measured_replaces_the_defaults(tmp_path: Path) -> None:
    def of(kind: str, chunks: float, alone: float, ingest: float, api: float) -> list[Figure]:
        return [
            Figure(f"{kind}: chunks of a document", "chunks", [chunks]),
            Figure(f"{kind}: processor of embedder alone", "s/document", [alone, 9, alone]),
            Figure(f"{kind}: processor of ingest", "s/document", [ingest]),
            Figure(f"{kind}: processor of api", "s/document", [api]),
        ]

    figures = of("several chunks", 7, 1.4, 1.8, 0.1) + of("one chunk", 1, 0.2, 0.3, 0.04)
    at = from_bench(Parameters(), Record().write(tmp_path / "bench.json", figures))
    assert at.embed_core_s_per_chunk == pytest.approx(0.2)
    assert at.chain_core_s_per_chunk == pytest.approx((0.5 - 0.14) / 6)
    assert at.chain_core_s_per_document == pytest.approx(0.14 - 0.06)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("[]")
    with pytest.raises(EvaluationError, match="no file of `make bench`"):
        from_bench(Parameters(), tmp_path / "a.json")


@pytest.mark.parametrize("values", [{"nonsense": "1"}, {"fill": "much"}])
def test_an_unknown_parameter_or_a_word_is_refused(values: dict[str, str]) -> None:
    with pytest.raises(EvaluationError, match=next(iter(values))):
        replaced(Parameters(), values)


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str
) -> str:
    monkeypatch.setattr(sys, "argv", ["capacity", *arguments])
    command.main()
    return capsys.readouterr().out


def test_the_command_prints_the_sizes_one_plan_and_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "| 1,000,000,000 |" in run(monkeypatch, capsys)
    one = run(monkeypatch, capsys, "--documents", "2e8", "--set", "host_memory_gb=128")
    assert "Bottleneck: store: memory, 17 of one server of 128 GB." in one
    plans = json.loads(run(monkeypatch, capsys, "--documents", "1000", "--json"))
    assert [each["chunks"] for each in plans] == [5000]
    assert "| fill | 0.7 | assumed" in run(monkeypatch, capsys, "--parameters")


def test_the_steps_of_the_simulation_commit_and_pass_their_documents_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with run_valkey(tmp_path) as (url, broker):
        ledger = f"sqlite:///{tmp_path / 'ledger.sqlite'}"
        case = sleeping.Simulation(url, ledger, 0.0, transactions=14, hold=0.0, documents=3)
        for name, value in case.environ().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sleeping.app.conf, "broker_url", url)
        for each in (sleeping.settings, sleeping.database, sleeping.broker):
            each.cache_clear()
        sleeping.prepare(case)
        sleeping.begin(1)
        for index in range(sleeping.STEPS):
            sleeping.step(0, index)
        assert broker.llen(sleeping.ENDED) == 1
        assert int(broker.get(sleeping.SENT) or 0) == 2
        assert broker.llen(sleeping.QUEUE) == 2
        assert len(broker.lrange(sleeping.WRITES, 0, -1)) == sleeping.STEPS
        assert written() == [14, 0, 0]
        sleeping.database().close()


def written() -> list[int]:
    with sleeping.database().reading() as connection:
        rows = connection.exec_driver_sql("SELECT writes FROM simulated ORDER BY id")
        return [row.writes for row in rows]
