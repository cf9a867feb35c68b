"""The parameters of the capacity model: what one document, chunk, message and search costs."""

import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from benchmarks.speed.bench import LONG, SHORT
from callslip.errors import EvaluationError


@dataclass(frozen=True)
class Parameters:
    """Each value is for one unit of its name; SOURCES says where it comes from."""

    # Ingestion
    embed_core_s_per_chunk: float = 0.127
    chain_core_s_per_document: float = 0.08
    chain_core_s_per_chunk: float = 0.024
    messages_per_document: float = 6.0
    transactions_per_document: float = 17.5
    # Servers that do one thing at a time
    broker_s_per_message: float = 0.0004
    sqlite_s_per_transaction: float = 0.008
    postgresql_core_s_per_transaction: float = 0.006
    store_chunks_per_s: float = 275.0
    # Search
    search_core_s: float = 0.044
    store_search_core_s: float = 0.005
    messages_per_search: float = 2.0
    keyword_searches_per_s: float = 130.0
    # Bytes
    store_disk_kb_per_chunk: float = 5.9
    store_memory_kb_per_chunk: float = 2.2
    store_memory_gb: float = 0.17
    ledger_kb_per_chunk: float = 0.22
    blob_kb_per_chunk: float = 6.0
    audit_memory_kb_per_chunk: float = 0.3
    audit_s_per_chunk: float = 0.000154
    ingest_process_gb: float = 0.8
    search_worker_gb: float = 0.6
    rest_gb: float = 0.8
    # Machines and prices, for you to replace
    host_cores: float = 16.0
    host_memory_gb: float = 64.0
    volume_gb: float = 2000.0
    fill: float = 0.7
    core_hour: float = 0.04
    memory_gb_hour: float = 0.005
    disk_gb_month: float = 0.08


SOURCES = {
    "embed_core_s_per_chunk": "docs/performance.md: 1.22 documents/s of 7 chunks on 2 cores; bf16",
    "chain_core_s_per_document": "benchmarks.capacity.count: processor of all roles, one chunk",
    "chain_core_s_per_chunk": "the same, from the difference to seven chunks",
    "messages_per_document": "a message for each of six steps; less where documents share messages",
    "transactions_per_document": "benchmarks.capacity.count: those that write, of a document alone",
    "broker_s_per_message": "benchmarks.capacity.count: Valkey's time of a document ÷ 6 messages",
    "sqlite_s_per_transaction": "benchmarks.capacity.simulate: time with the write lock",
    "postgresql_core_s_per_transaction": "benchmarks.capacity.count: active time, reads included",
    "store_chunks_per_s": "docs/performance.md: Chroma from 50,000 to 1,000,000 chunks",
    "search_core_s": "benchmarks.compare: search, processor ms of all processes",
    "store_search_core_s": "docs/performance.md: Chroma, p50 at 1,000,000 chunks",
    "messages_per_search": "a request and a reply",
    "keyword_searches_per_s": "docs/performance.md: the keyword index's service, beside Chroma",
    "store_disk_kb_per_chunk": "docs/performance.md: Chroma and keyword index, 1,000,000 chunks",
    "store_memory_kb_per_chunk": "docs/performance.md: Chroma from 10,000 to 1,000,000 chunks",
    "store_memory_gb": "docs/performance.md: Chroma with 10,000 chunks",
    "ledger_kb_per_chunk": "docs/performance.md: the ledger with 1,000,000 chunks",
    "blob_kb_per_chunk": "docs/machines.md: file, text and vectors; assumes 2 KB of text a chunk",
    "audit_memory_kb_per_chunk": "docs/machines.md",
    "audit_s_per_chunk": "docs/performance.md: audit of 1,000,000 chunks in Chroma",
    "ingest_process_gb": "docs/performance.md: memory of each ingest process",
    "search_worker_gb": "docs/performance.md: memory of the search worker",
    "rest_gb": "docs/performance.md: API, maintenance, supervisor, broker, ingest's main process",
    "host_cores": "assumed",
    "host_memory_gb": "assumed",
    "volume_gb": "assumed",
    "fill": "assumed: the share of a machine that is planned; the rest is for peaks and failures",
    "core_hour": "assumed, in your currency",
    "memory_gb_hour": "assumed, in your currency",
    "disk_gb_month": "assumed, in your currency",
}

BY_BENCH = ("embed_core_s_per_chunk", "chain_core_s_per_document", "chain_core_s_per_chunk")
"""What `from_bench` replaces."""


def from_bench(parameters: Parameters, file: Path) -> Parameters:
    """Replace the processor times by those of a JSON file of `make bench`.

    Raises EvaluationError if the file is none.
    """
    try:
        record = json.loads(file.read_text(encoding="utf-8"))
        median = {f["name"]: statistics.median(f["repeats"]) for f in record["figures"]}
        chunks = [median[f"{kind.name}: chunks of a document"] for kind in (LONG, SHORT)]
        embed = [median[f"{kind.name}: processor of embedder alone"] for kind in (LONG, SHORT)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{file} is no file of `make bench`: {error!r}") from error
    chain = [
        sum(
            seconds
            for name, seconds in median.items()
            if name.startswith(f"{kind.name}: processor of ") and not name.endswith("alone")
        )
        - alone
        for kind, alone in zip((LONG, SHORT), embed, strict=True)
    ]
    per_chunk = max(0.0, (chain[0] - chain[1]) / (chunks[0] - chunks[1]))
    return replace(
        parameters,
        embed_core_s_per_chunk=embed[0] / chunks[0],
        chain_core_s_per_chunk=per_chunk,
        chain_core_s_per_document=max(0.0, chain[1] - per_chunk * chunks[1]),
    )


def replaced(parameters: Parameters, values: Mapping[str, str]) -> Parameters:
    """Replace parameters by name. Raises EvaluationError for an unknown name or a bad number."""
    names = [field.name for field in fields(Parameters)]
    numbers = {}
    for name, text in values.items():
        if name not in names:
            raise EvaluationError(
                f"there is no parameter {name!r}", hint=f"There are: {', '.join(names)}."
            )
        try:
            numbers[name] = float(text)
        except ValueError:
            raise EvaluationError(f"{name} is a number, not {text!r}") from None
    return replace(parameters, **numbers)
