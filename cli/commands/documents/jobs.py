"""`callslip jobs run`: ingests the files of a manifest; a repeated run sends only changes."""

import io
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from callslip.cli.shared.manifest import Placed, read_manifest
from callslip.cli.shared.manifest_diff import STATES, TO_SEND, Planned, plan
from callslip.cli.shared.options import collection_option
from callslip.cli.shared.output import as_json, emit, many, reporting
from callslip.cli.shared.server import connect, url_option
from callslip.cli.shared.upload import Report, ingest, source_of
from callslip.client import Client

MOST_SHOWN = 20
"""Lines of each state that a dry run shows; with --json it prints all lines."""


@click.group(name="jobs")
def jobs_group() -> None:
    """Ingest thousands of files that a manifest names.

    A manifest has one JSON object per line: `path`, and fields of the document (`name`,
    `collection`, `tenant`, `title`, `doc_type`, `jurisdiction`, `lang`, `valid_from`, `valid_to`,
    `properties`).
    jobs/README.md describes every field, jobs/examples.jsonl is an example.

    \b
    Example:  callslip jobs run jobs/examples.jsonl --dry-run
    """


@jobs_group.command()
@click.argument("manifest", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@collection_option
@click.option("--dry-run", is_flag=True, help="Say what would change, and change nothing.")
@url_option
@as_json
@reporting
def run(manifest: Path, collection: str, dry_run: bool, url: str | None, json_out: bool) -> None:
    """Send every file of MANIFEST that is new or changed, and wait until it can be found.

    All lines are checked first; if a line is wrong or two lines contradict each other, nothing is
    sent. After an interruption the same command continues and repeats nothing. Exit code 1 if a
    file is missing or failed.

    \b
    Example:  callslip jobs run jobs/examples.jsonl --dry-run
              callslip jobs run jobs/examples.jsonl -c handbook
    """
    begun = time.monotonic()
    lines = read_manifest(manifest, collection)
    with connect(url) as client:
        with _bar("Comparing", len(lines), quiet=json_out) as bar:
            planned = plan(client, lines, lambda: bar.update(1))
        if dry_run:
            outcome = _planned_as_json(manifest, planned)
        else:
            sent = _send(client, planned, manifest, quiet=json_out)
            outcome = _as_json(manifest, planned, sent, time.monotonic() - begun)
    if json_out:
        emit(outcome)
    elif dry_run:
        _tell_plan(planned)
    else:
        _tell(outcome, planned)
    sys.exit(1 if outcome["failed"] else 0)


def _send(
    client: Client, planned: Sequence[Planned], manifest: Path, *, quiet: bool
) -> list[tuple[Placed, Report]]:
    """Send new and changed files, one collection and tenant after the other.

    Returns each line with its report. There is no local state: after an interrupted run, the server
    knows the sent files, and the comparison finds them.
    """
    groups: dict[tuple[str, str], list[Placed]] = {}
    for item in planned:
        if item.state in TO_SEND:
            placed = item.placed
            groups.setdefault((placed.collection, placed.tenant), []).append(placed)
    reports = []
    try:
        for (collection, tenant), lines in groups.items():
            sources = [source_of(placed) for placed in lines]
            report = ingest(client, collection, sources, tenant=tenant, show_bar=not quiet)
            reports += [(placed, report) for placed in lines]
    except KeyboardInterrupt:
        click.echo(
            f"\nStopped. What was sent goes on; callslip jobs run {manifest} does the rest.",
            err=True,
        )
        sys.exit(130)
    return reports


def _planned_as_json(manifest: Path, planned: Sequence[Planned]) -> dict[str, Any]:
    return {
        "manifest": str(manifest),
        "lines": len(planned),
        "states": _states(planned),
        "files": [
            {
                "line": item.placed.line,
                "collection": item.placed.collection,
                "tenant": item.placed.tenant,
                "name": item.placed.name,
                "state": item.state,
                "reason": item.reason,
            }
            for item in planned
        ],
        "failed": [_missing(item) for item in planned if item.state == "missing"],
    }


def _as_json(
    manifest: Path, planned: Sequence[Planned], sent: list[tuple[Placed, Report]], seconds: float
) -> dict[str, Any]:
    reports = list({id(report): report for _, report in sent}.values())
    lines = {(id(report), placed.name): placed.line for placed, report in sent}
    failed = [_missing(item) for item in planned if item.state == "missing"]
    for report in reports:
        failed += [one | {"line": lines[id(report), one["name"]]} for one in report.failed]
    return {
        "manifest": str(manifest),
        "lines": len(planned),
        "states": _states(planned),
        "live": sum(len(report.live) + len(report.unchanged) for report in reports),
        "failed": failed,
        "seconds": round(seconds, 2),
    }


def _states(planned: Sequence[Planned]) -> dict[str, int]:
    counts = Counter(item.state for item in planned)
    return {state: counts[state] for state in STATES if counts[state]}


def _missing(item: Planned) -> dict[str, Any]:
    return {
        "name": item.placed.name,
        "type": "missing-file",
        "detail": f"{item.placed.path}: {item.reason}",
        "advice": "Correct the path, which is below the manifest's folder, or the file.",
        "line": item.placed.line,
    }


def _tell_plan(planned: Sequence[Planned]) -> None:
    for state in STATES:
        items = [item for item in planned if item.state == state]
        if not items:
            continue
        click.secho(f"{len(items):>7,} {state}", bold=True)
        for item in items[:MOST_SHOWN] if state != "unchanged" else []:
            reason = f"  ({item.reason})" if item.reason else ""
            click.echo(f"          line {item.placed.line}: {item.placed.name}{reason}")
        if len(items) > MOST_SHOWN and state != "unchanged":
            click.echo(f"          and {len(items) - MOST_SHOWN:,} more")
    click.echo("Nothing was changed.")


def _tell(outcome: dict[str, Any], planned: Sequence[Planned]) -> None:
    states = ", ".join(f"{count:,} {state}" for state, count in outcome["states"].items())
    click.echo(f"{many(outcome['lines'], 'line')}: {states}")
    live, failed = outcome["live"], len(outcome["failed"])
    if live or failed:
        click.echo(f"{live:,} went live, {failed:,} failed in {outcome['seconds']:.1f} s")
    else:
        click.echo("There was nothing to send.")
    for item in planned:
        if item.state == "duplicate":
            click.echo(f"  line {item.placed.line}: {item.placed.name}: {item.reason}, left out")
    for one in outcome["failed"]:
        click.secho(f"  line {one['line']}: {one['name']}: {one['detail']}", fg="red")
        click.echo(f"    {one['advice']}")


@contextmanager
def _bar(label: str, length: int, *, quiet: bool) -> Iterator[Any]:
    shown_on = io.StringIO() if quiet else sys.stderr
    with click.progressbar(length=length, label=label, show_pos=True, file=shown_on) as bar:
        yield bar
