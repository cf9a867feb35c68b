"""Output of benchmarks: Markdown on standard output, progress on standard error."""

import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import psutil

from callslip import __version__
from callslip.config.settings import Settings


def header(settings: Settings) -> str:
    """The heading of a report: the settings, the time and the machine."""
    return (
        f"Callslip {__version__}, {datetime.now(UTC):%Y-%m-%d}, {platform.system()}"
        f" {platform.machine()}, {psutil.cpu_count()} cores, load {psutil.getloadavg()[0]:.1f} at"
        f" the start, Python {platform.python_version()}; {settings.ingest.concurrency} ingest"
        f" processes, embedder {settings.embedder.kind} with"
        f" {settings.embedder_threads} threads each"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def figure(value: float, sign: str = "-") -> str:
    """Return three decimals without a leading zero: .679, 1.000; with a sign +.012, −.003."""
    value = round(value, 3) or 0.0  # no −.000
    return f"{value:{sign}.3f}".replace("0.", ".", 1).replace("-", "−")


def tell(text: str) -> None:
    """Print a progress message."""
    print(f"{text} …", file=sys.stderr, flush=True)
