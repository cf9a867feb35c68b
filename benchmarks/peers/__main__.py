"""`python -m benchmarks.peers [NAME…]`: Callslip and other retrieval systems, in turns.

All get the same text files from judged sets, cut into the same chunks, and embed them with the same
code, weights and precision. Each runs in an environment of its own, built once from the package
index below var/peers. Each round measures one system after the other: from files to searchable,
searches with 1, 4 and 16 at one time, 1 % of the documents changed, 10 % deleted, and what is left
after all processes were killed in the middle of an ingestion. Ratios above 1: Callslip is ahead.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from benchmarks.peers import report
from benchmarks.peers.environments import CACHE, SYSTEMS, System, command, interpreter, variables
from benchmarks.peers.material import Material, prepare
from benchmarks.peers.measuring import Round, measure_round
from benchmarks.peers.running import Running
from callslip.errors import CallslipError, EvaluationError, StartError
from callslip.evals.tables import tell

SETS = ("en_scifact", "en_xquad", "en_stackfaq", "ko_autorag")
DOCUMENTS, SEARCHES, ROUNDS = 2000, 1000, 1

EXAMPLES = """examples:
  python -m benchmarks.peers --data judged-sets
  python -m benchmarks.peers haystack txtai --data judged-sets --documents 200 --searches 100
"""


def main() -> None:
    """Measure and print; after a failure, print the reason and exit with 1."""
    options = _options()
    try:
        pythons = _interpreters(options.names or [name for name in SYSTEMS if name != report.OWN])
        with tempfile.TemporaryDirectory(prefix="callslip-peers-") as folder:
            tell("writing the documents")
            sets = [options.data / name for name in options.sets]
            models = CACHE / "models"
            models.mkdir(parents=True, exist_ok=True)
            material = prepare(sets, options.documents, Path(folder) / "texts", models)
            _print_header(options, material)
            rounds = _rounds(options, pythons, material, Path(folder))
        if report.OWN not in rounds:
            raise EvaluationError("the run ended before Callslip was measured")
        _print(rounds)
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    others = ", ".join(name for name in SYSTEMS if name != report.OWN)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: {others}")
    parser.add_argument(
        "--data", type=Path, required=True, metavar="FOLDER", help="the folder of the judged sets"
    )
    parser.add_argument(
        "--sets", nargs="+", default=SETS, metavar="SET", help=f"default: {' '.join(SETS)}"
    )
    parser.add_argument("--documents", type=int, default=DOCUMENTS, help=f"default: {DOCUMENTS}")
    parser.add_argument(
        "--searches", type=int, default=SEARCHES, help=f"of each kind; default: {SEARCHES}"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"default: {ROUNDS}")
    options = parser.parse_args()
    if unknown := set(options.names) - set(SYSTEMS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are: {others}")
    return options


def _interpreters(names: Sequence[str]) -> dict[str, Path]:
    """Return the systems that can run, Callslip first, with their interpreters."""
    pythons: dict[str, Path] = {}
    for name in dict.fromkeys((report.OWN, *names)):
        try:
            pythons[name] = interpreter(SYSTEMS[name])
        except StartError as error:
            tell(f"left out: {error.detail}")
    return pythons


def _rounds(
    options: argparse.Namespace, pythons: dict[str, Path], material: Material, scratch: Path
) -> dict[str, list[Round]]:
    """Measure the systems in turns, until Ctrl-C; a system that fails is left out from then on."""
    rounds: dict[str, list[Round]] = {name: [] for name in pythons}
    with suppress(KeyboardInterrupt):
        _measure(options, pythons, material, scratch, rounds)
    return {name: each for name, each in rounds.items() if each}


def _measure(
    options: argparse.Namespace,
    pythons: dict[str, Path],
    material: Material,
    scratch: Path,
    rounds: dict[str, list[Round]],
) -> None:
    for number in range(options.rounds):
        for name in list(rounds):
            tell(f"round {number + 1} of {options.rounds}: {name}")
            data = scratch / f"{name}-{number}"
            data.mkdir()
            start = partial(_start, SYSTEMS[name], pythons[name])
            try:
                result = measure_round(name, start, material, options.searches, data)
            except EvaluationError as error:
                if name == report.OWN:
                    raise
                tell(f"left out: {name}: {error.detail}")
                del rounds[name]
                continue
            rounds[name].append(result)
            tell(f"load {os.getloadavg()[0]:.1f}; {_line(result)}")


def _start(system: System, python: Path, data: Path) -> Running:
    log = data.with_name(f"{data.name}.log")
    return Running(command(system, python, data, CACHE / "models"), variables(), log)


def _line(result: Round) -> str:
    figures = ", ".join(f"{name} {value:.2f}" for name, value in result.figures.items())
    return f"{figures}; {result.survival}"


def _print_header(options: argparse.Namespace, material: Material) -> None:
    print(
        f"{len(material.chunks):,} documents ({material.megabytes:.1f} MB,"
        f" {sum(material.chunks.values()):,} chunks) of {', '.join(options.sets)};"
        f" {len(material.queries):,} queries, {options.searches:,} searches of each kind;"
        f" {options.rounds} rounds; {os.cpu_count()} cores,"
        f" load {os.getloadavg()[0]:.1f} at the start",
        end="\n\n",
        flush=True,
    )


def _print(rounds: dict[str, list[Round]]) -> None:
    tables = [report.figures(rounds), report.ratios(rounds), report.survival(rounds)]
    print("\n\n".join([*tables, report.remarks(rounds)]).strip())


if __name__ == "__main__":
    main()
