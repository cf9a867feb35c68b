"""`callslip eval`: measures a judged set with progress, and prints a report."""

import json
import sys
from pathlib import Path

from pydantic import SecretStr

from callslip.errors import EvaluationError
from callslip.evals.client import JsonClient
from callslip.evals.judge import Progress, evaluate
from callslip.evals.report import MARGIN, table


def run(
    folder: Path,
    url: str,
    *,
    key: SecretStr | None,
    store: str | None,
    most_queries: int | None,
    keep: bool,
    gate: bool,
    json_out: bool,
) -> None:
    """Measure and print; show progress on standard error if that is a terminal.

    Raises the errors of `evals.judge.evaluate`. With `gate` raises EvaluationError, after the
    report, if hybrid search is more than MARGIN below its better half, or if one is missing.
    """
    with JsonClient(url, key=key) as client:
        report = evaluate(
            folder, client, store=store, most_queries=most_queries, on_progress=show, keep=keep
        )
    show_end()
    if json_out:
        print(json.dumps(report.as_json(), ensure_ascii=False, indent=2))
    else:
        print(table(report))
    if gate and report.comparison is None:
        raise EvaluationError("the gate needs keyword, vector and hybrid search; one is missing")
    if gate and report.comparison and not report.comparison.passes():
        raise EvaluationError(f"below the gate of -{MARGIN}: {report.comparison}")


def show(progress: Progress) -> None:
    """Overwrite the progress line."""
    if sys.stderr.isatty():
        rate = progress.done / progress.seconds if progress.seconds else 0.0
        share = f"{progress.done:,}/{progress.total:,}"
        print(
            f"\r\x1b[K{progress.phase} {share}, {rate:.1f}/s", end="", file=sys.stderr, flush=True
        )


def show_end() -> None:
    """Clear the progress line."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
