"""How many machines an installation needs: `python -m benchmarks.capacity --documents N`.

Prints the layout for N documents, M changes a day and Q searches a second: workers, hosts, memory,
disk, cost, and the load of each resource in units of one server. The bottleneck is the resource
that needs most units. Without --documents it prints a table from 10⁴ to 10⁹ chunks. The parameters
and prices are defaults with a named source; replace any with --set. docs/capacity.md explains them.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from benchmarks.capacity.model import Plan, Workload, plan
from benchmarks.capacity.parameters import BY_BENCH, SOURCES, Parameters, from_bench, replaced
from callslip.errors import CallslipError
from callslip.evals.tables import table

SIZES = tuple(10**power for power in range(4, 10))
"""Chunks of the table."""

CHANGED = 0.01
"""The share of the documents that change in a day, unless --changes says it."""

EXAMPLES = """examples:
  python -m benchmarks.capacity                              10⁴ to 10⁹ chunks
  python -m benchmarks.capacity --documents 2000000 --changes 20000 --searches 20
  python -m benchmarks.capacity --bench .benchmarks/FILE.json   with what `make bench` measured
  python -m benchmarks.capacity --set core_hour=.06 --set host_cores=32
  python -m benchmarks.capacity --parameters                 all parameters and their sources"""


def main() -> None:
    """Print the plan, or the table of sizes."""
    options = _options()
    try:
        at = Parameters() if options.bench is None else from_bench(Parameters(), options.bench)
        at = replaced(at, dict(options.set))
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")
    if options.parameters:
        print(_parameters(at, options.bench))
        return
    each = options.chunks_per_document
    documents = [options.documents] if options.documents else [round(n / each) for n in SIZES]
    plans = [plan(_workload(options, count), at) for count in documents]
    if options.json:
        print(json.dumps([_json(layout) for layout in plans], indent=1))
    elif options.documents:
        print(_one(plans[0]))
    else:
        print(_sizes(plans))


def _options() -> argparse.Namespace:
    work = Workload(documents=0)
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.capacity",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--documents", type=_count, metavar="N")
    parser.add_argument("--chunks-per-document", type=_positive, default=work.chunks_per_document)
    parser.add_argument("--days", type=_positive, default=work.days, help="of the first ingestion")
    parser.add_argument(
        "--changes", type=float, metavar="M", help="documents a day; default: one in a hundred"
    )
    parser.add_argument(
        "--busy-hours", type=_positive, default=work.busy_hours, help="in which the changes come"
    )
    parser.add_argument(
        "--searches", type=float, metavar="Q", default=work.searches_per_s, help="a second"
    )
    parser.add_argument("--bench", type=Path, metavar="FILE", help="the JSON of `make bench`")
    parser.add_argument(
        "--set", action="append", default=[], type=_pair, metavar="NAME=VALUE", help="a parameter"
    )
    parser.add_argument("--parameters", action="store_true", help="print them with their sources")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def _count(text: str) -> int:
    if (count := int(float(text))) < 1:
        raise argparse.ArgumentTypeError("at least one document")
    return count


def _positive(text: str) -> float:
    if (number := float(text)) <= 0:
        raise argparse.ArgumentTypeError("must be positive")
    return number


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError("NAME=VALUE")
    return name, value


def _workload(options: argparse.Namespace, documents: int) -> Workload:
    return Workload(
        documents,
        options.chunks_per_document,
        options.days,
        documents * CHANGED if options.changes is None else options.changes,
        options.busy_hours,
        options.searches,
    )


def _one(layout: Plan) -> str:
    work = layout.workload
    rows = [
        ("chunks", f"{work.chunks:,.0f}"),
        ("pace of ingestion", f"{work.documents_per_s:.3g} documents/s"),
        ("ingest processes", f"{layout.ingest_processes}"),
        ("search workers", f"{layout.search_workers}"),
        ("store", layout.store),
        ("ledger", layout.ledger),
        ("hosts", f"{layout.hosts}"),
        ("cores", f"{layout.cores:.0f}"),
        ("memory", f"{layout.memory_gb:,.1f} GB"),
        ("disk", f"{layout.disk_gb:,.1f} GB"),
        ("first ingestion, once", f"{layout.first_cost:,.2f}"),
        ("a month", f"{layout.monthly_cost:,.2f}"),
    ]
    loads = [
        (each.name, f"{each.load:.3g}", each.unit, each.change if each in layout.short else "")
        for each in layout.resources
    ]
    return "\n\n".join(
        (
            table(("what", "how much"), rows),
            table(("resource", "load", "of one", "change"), loads),
            f"Bottleneck: {_bottleneck(layout)}.",
        )
    )


def _sizes(plans: Sequence[Plan]) -> str:
    head = (
        *("chunks", "documents/s", "ingest processes", "search workers", "store", "ledger"),
        *("hosts", "memory, GB", "disk, GB", "first ingestion", "a month", "bottleneck"),
    )
    rows = [
        (
            f"{layout.workload.chunks:,.0f}",
            f"{layout.workload.documents_per_s:.2g}",
            f"{layout.ingest_processes}",
            f"{layout.search_workers}",
            layout.store,
            layout.ledger,
            f"{layout.hosts}",
            f"{layout.memory_gb:,.0f}",
            f"{layout.disk_gb:,.0f}",
            f"{layout.first_cost:,.2f}",
            f"{layout.monthly_cost:,.0f}",
            _bottleneck(layout),
        )
        for layout in plans
    ]
    changes = [
        f"- {layout.workload.chunks:,.0f} chunks: "
        + "; ".join(f"{each.name} ({each.load:.2g}): {each.change}" for each in layout.short)
        for layout in plans
        if layout.short
    ]
    return "\n\n".join((table(head, rows), "\n".join(changes)))


def _bottleneck(layout: Plan) -> str:
    at = layout.bottleneck
    text = f"{at.name}, {at.load:.2g} of one {at.unit}"
    return text if at in layout.short else f"none; the first would be {text}"


def _json(layout: Plan) -> dict[str, Any]:
    return {
        **asdict(layout),
        "chunks": layout.workload.chunks,
        "bottleneck": layout.bottleneck.name,
        "to_change": [each.name for each in layout.short],
    }


def _parameters(at: Parameters, bench: Path | None) -> str:
    sources = SOURCES if bench is None else SOURCES | dict.fromkeys(BY_BENCH, str(bench))
    rows = [
        (field.name, f"{getattr(at, field.name):.6g}", sources[field.name])
        for field in fields(Parameters)
    ]
    return table(("parameter", "value", "source"), rows)


if __name__ == "__main__":
    main()
