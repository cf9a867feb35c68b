"""The capacity model: demand ÷ supply of each resource, the layout, its cost and its bottleneck."""

import math
from dataclasses import dataclass

from benchmarks.capacity.parameters import Parameters

OTHER_LEDGER = {"SQLite": "ledger: PostgreSQL", "PostgreSQL": "ledger: SQLite"}

DAY, HOURS_PER_MONTH, KB_PER_GB = 86400.0, 730.0, 1e6


@dataclass(frozen=True)
class Workload:
    """What an installation has to do."""

    documents: int
    chunks_per_document: float = 5.0
    days: float = 30.0
    """The days in which all documents are ingested at first."""
    changes_per_day: float = 0.0
    """Documents that are new or changed."""
    busy_hours: float = 8.0
    """The hours of a day in which its changes come."""
    searches_per_s: float = 1.0
    """At the busiest time."""

    @property
    def chunks(self) -> float:
        """The number of chunks of all documents."""
        return self.documents * self.chunks_per_document

    @property
    def documents_per_s(self) -> float:
        """The pace that ingestion needs: at first, or in the busy hours of a day."""
        return max(
            self.documents / (self.days * DAY), self.changes_per_day / (self.busy_hours * 3600)
        )


@dataclass(frozen=True)
class Resource:
    """What the workload needs of one resource, in units of one server, host or volume."""

    name: str
    load: float
    """Demand ÷ what one unit supplies: 1.5 is one and a half units, used to the full."""
    unit: str
    change: str
    """What to change where one unit does not suffice."""


@dataclass(frozen=True)
class Plan:
    """The layout for a workload."""

    workload: Workload
    ledger: str
    store: str
    store_nodes: int
    ingest_processes: int
    search_workers: int
    hosts: int
    cores: float
    memory_gb: float
    disk_gb: float
    first_cost: float
    """The price of the cores that ingest all documents once."""
    monthly_cost: float
    resources: list[Resource]
    """In descending order of load."""
    short: list[Resource]
    """Those of which one unit does not suffice."""

    @property
    def bottleneck(self) -> Resource:
        """The resource of the layout that needs most units: the first to change."""
        used = [each for each in self.resources if each.name != OTHER_LEDGER[self.ledger]]
        return used[0]


def plan(work: Workload, at: Parameters) -> Plan:
    """Return the layout for a workload and the load of each resource."""
    pace, chunks = work.documents_per_s, work.chunks
    core_s = _core_seconds(work, at)
    ingest_cores, search_cores = pace * core_s, work.searches_per_s * at.search_core_s
    transactions = pace * at.transactions_per_document
    sqlite = transactions * at.sqlite_s_per_transaction
    store_memory = at.store_memory_gb + chunks * at.store_memory_kb_per_chunk / KB_PER_GB
    store_disk = chunks * at.store_disk_kb_per_chunk / KB_PER_GB
    store = {
        "memory": store_memory / at.host_memory_gb,
        "disk": store_disk / at.volume_gb,
        "writes": pace * work.chunks_per_document / at.store_chunks_per_s,
    }
    nodes = max(1, math.ceil(max(store.values()) / at.fill))
    keyword = work.searches_per_s / at.keyword_searches_per_s
    one = "one Chroma" if keyword <= at.fill else "one Weaviate or CrateDB"
    store_name = one if nodes == 1 else f"cluster of {nodes}"
    store_cores = work.searches_per_s * at.store_search_core_s * nodes  # each searches its part
    ingest = max(1, math.ceil(ingest_cores / at.fill))
    search = max(1, math.ceil(search_cores / at.fill))
    memory = (
        ingest * at.ingest_process_gb + search * at.search_worker_gb + at.rest_gb + store_memory
    )
    disk = store_disk + chunks * (at.ledger_kb_per_chunk + at.blob_kb_per_chunk) / KB_PER_GB
    cores = ingest + search + math.ceil(store_cores / at.fill)
    single = nodes == 1 and cores <= at.host_cores and memory <= at.host_memory_gb
    hosts = 1 if single else nodes + math.ceil((ingest + search) / at.host_cores) + 1
    on_sqlite = single and sqlite <= at.fill  # one file, which hosts cannot share
    postgresql_cores = transactions * at.postgresql_core_s_per_transaction
    if not on_sqlite:
        cores += math.ceil(postgresql_cores / at.fill)
    resources = [
        Resource(
            "embedder and chain",
            ingest_cores / at.host_cores,
            f"host of {at.host_cores:.0f} cores",
            "more ingest hosts; the embedder on a GPU (embedder.device, embedder.kind: openai);"
            " more days for the first ingestion",
        ),
        Resource(
            "searches",
            (search_cores + store_cores) / at.host_cores,
            f"host of {at.host_cores:.0f} cores",
            "more search workers and API hosts; with many store nodes, replicas of the store",
        ),
        Resource(
            "ledger: SQLite",
            sqlite,
            "writer",
            "a PostgreSQL server (ledger.url)",
        ),
        Resource(
            "ledger: PostgreSQL",
            postgresql_cores / at.host_cores,
            f"server of {at.host_cores:.0f} cores",
            "a server with more cores; several installations, each with some collections",
        ),
        Resource(
            "broker",
            (
                pace * at.messages_per_document + work.searches_per_s * at.messages_per_search
            )
            * at.broker_s_per_message,
            "Valkey (one thread)",
            "several installations, each with some collections",
        ),
        Resource(
            "keyword index",
            keyword,
            "service beside Chroma",
            "Weaviate or CrateDB, whose nodes have the keyword index too",
        ),
        *(
            Resource(f"store: {name}", load, unit, change)
            for (name, load), unit, change in zip(
                store.items(),
                (
                    f"server of {at.host_memory_gb:.0f} GB",
                    f"volume of {at.volume_gb:.0f} GB",
                    "Chroma server",
                ),
                (
                    "a cluster of Weaviate or CrateDB, or servers with more memory",
                    "larger volumes, or a cluster",
                    "a cluster of Weaviate or CrateDB, which writes on all nodes",
                ),
                strict=True,
            )
        ),
        Resource(
            "audit: memory",
            chunks * at.audit_memory_kb_per_chunk / KB_PER_GB / at.host_memory_gb,
            f"host of {at.host_memory_gb:.0f} GB",
            "several collections or tenants, audited one after the other",
        ),
        Resource(
            "audit: time",
            chunks * at.audit_s_per_chunk / DAY,
            "day",
            "several collections or tenants, audited on different days",
        ),
    ]  # fmt: skip
    resources.sort(key=lambda each: -each.load)
    return Plan(
        work,
        "SQLite" if on_sqlite else "PostgreSQL",
        store_name,
        nodes,
        ingest,
        search,
        hosts,
        cores,
        memory,
        disk,
        work.documents * core_s / 3600 * at.core_hour,
        HOURS_PER_MONTH * (cores * at.core_hour + memory * at.memory_gb_hour)
        + disk * at.disk_gb_month,
        resources,
        [each for each in resources if each.load > at.fill],
    )


def _core_seconds(work: Workload, at: Parameters) -> float:
    """Processor seconds that ingest a document."""
    per_chunk = at.embed_core_s_per_chunk + at.chain_core_s_per_chunk
    return at.chain_core_s_per_document + work.chunks_per_document * per_chunk
