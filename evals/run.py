"""`callslip eval`: measures a judged set, telling how far it is, and prints what was found."""

import json
import sys
from pathlib import Path

from pydantic import SecretStr

from evals.client import Desk
from evals.judge import Progress, evaluate
from evals.report import table


def run(
    folder: Path,
    url: str,
    *,
    key: SecretStr | None,
    store: str | None,
    most_queries: int | None,
    keep: bool,
    json_out: bool,
) -> None:
    """Measure and print; progress goes to standard error where that is a terminal.

    Raises what `evals.judge.evaluate` raises.
    """
    with Desk(url, key=key) as desk:
        report = evaluate(
            folder, desk, store=store, most_queries=most_queries, on_progress=show, keep=keep
        )
    show_end()
    if json_out:
        print(json.dumps(report.as_json(), ensure_ascii=False, indent=2))
    else:
        print(table(report))


def show(progress: Progress) -> None:
    """Write one line over the last."""
    if sys.stderr.isatty():
        rate = progress.done / progress.seconds if progress.seconds else 0.0
        share = f"{progress.done:,}/{progress.total:,}"
        print(
            f"\r\x1b[K{progress.phase} {share}, {rate:.1f}/s", end="", file=sys.stderr, flush=True
        )


def show_end() -> None:
    """Clear that line."""
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)
