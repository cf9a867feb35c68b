"""Measures how long a hung part goes unnoticed, and how long stopping takes under ingestion.

python -m benchmarks.reliability.hung_parts [--stops N]
"""

import argparse
import os
import signal
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from benchmarks.private_stack import PrivateStack, private_stack
from callslip.workers.supervision import runfile

PARTS = ("search", "valkey", "chroma")

LONGEST_SECONDS = 120.0

LOADED_SECONDS = 5.0
"""Seconds of ingestion before a stop."""

KILLED = "does not stop, killed"


def essay(paragraphs: int) -> str:
    """A text of about 60 tokens a paragraph, different at each call."""
    mark = uuid.uuid4().hex[:8]
    return "\n\n".join(
        f"Paragraph {number} of {mark} says that whoever files case {number * 7919 % 10007}"
        f" before the office closes on day {number % 28 + 1} receives a receipt with the number"
        f" {mark}-{number}, and that the office answers within {number % 9 + 2} weeks."
        for number in range(paragraphs)
    )


def main() -> None:
    """Print a line per fault, and with --stops a line per stop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stops", type=int, default=0, help="stops under ingestion to measure")
    stops = parser.parse_args().stops
    if stops:
        _measure_stops(stops)
        return
    with private_stack() as stack, _client(stack) as client:
        _submit(client, 4, paragraphs=3)
        while _search(client).json().get("hits") == []:
            time.sleep(0.2)
        for part in PARTS:
            print(_hung(stack, client, part), flush=True)


def _hung(stack: PrivateStack, client: httpx.Client, part: str) -> str:
    """Stop a part with SIGSTOP; describe what a caller sees until all is as before."""
    folder = stack.settings.data_dir
    before = _pid(folder, part)
    os.kill(before, signal.SIGSTOP)
    begun = time.monotonic()
    reported = restarted = 0.0
    ready_times: list[float] = []
    searches: list[tuple[float, str]] = []
    while time.monotonic() - begun < LONGEST_SECONDS:
        at = time.monotonic()
        response = _search(client)
        partial = response.json().get("partial")
        kind = f"{response.status_code}{' partial' if partial else ''}"
        searches.append((time.monotonic() - at, kind))
        at = time.monotonic()
        is_ready = client.get("/readyz").status_code == httpx.codes.OK
        ready_times.append(time.monotonic() - at)
        reported = reported or (0.0 if is_ready else time.monotonic() - begun)
        restarted = restarted or (time.monotonic() - begun if _pid(folder, part) != before else 0.0)
        if restarted and is_ready and kind == "200":
            break
        time.sleep(0.1)
    healthy = time.monotonic() - begun
    waits = sorted(seconds for seconds, _ in searches)
    kinds = sorted({kind for _, kind in searches})
    return (
        f"{part}: reported {reported:.1f} s, restarted {restarted:.1f} s, healthy {healthy:.1f} s;"
        f" /readyz at most {max(ready_times):.2f} s; {len(waits)} searches ({', '.join(kinds)}):"
        f" median {1000 * waits[len(waits) // 2]:.0f} ms, over 100 ms"
        f" {[round(seconds, 2) for seconds in waits if seconds > 0.1]}"
    )


def _measure_stops(stops: int) -> None:
    with tempfile.TemporaryDirectory(prefix="callslip-stops-") as folder:
        for number in range(1, stops + 1):
            with private_stack(Path(folder)) as stack:
                with _client(stack) as client:
                    _submit(client, 10, paragraphs=120)
                time.sleep(LOADED_SECONDS)
                begun = time.monotonic()
            seconds = time.monotonic() - begun
            killed = (Path(folder) / "up.out").read_text().count(KILLED)
            print(f"stop {number}: {seconds:.1f} s, {killed} killed", flush=True)


@contextmanager
def _client(stack: PrivateStack) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=stack.run.api_url, timeout=60, trust_env=False) as client:
        client.post("/v1/collections", json={"name": "bench"})
        yield client


def _submit(client: httpx.Client, count: int, *, paragraphs: int) -> None:
    for _ in range(count):
        document = {"text": essay(paragraphs), "name": f"{uuid.uuid4().hex}.txt"}
        client.post("/v1/collections/bench/documents", json=document).raise_for_status()


def _search(client: httpx.Client) -> httpx.Response:
    question = f"office receipt {uuid.uuid4().hex}"  # no cache has its candidates
    return client.post("/v1/search", json={"collection": "bench", "query": question, "top": 3})


def _pid(folder: Path, part: str) -> int:
    run = runfile.read(folder)
    return run.parts[part].pid if run and part in run.parts else 0


if __name__ == "__main__":
    main()
