"""Compares two commits in turns: `python -m benchmarks.compare REV [NEW]`, or
`make bench-compare REV=…`.

Both commits are cloned into a temporary folder. In each round both do the same work with the same
new texts, in a stack of their own that starts with an empty folder; the order changes from round to
round (old new, new old, …). Of each figure less is better. The rounds' ratios new ÷ old make a
geometric mean with a 95 % confidence interval (Student's, of the logarithms).

The exit code is 1 exactly if the whole interval of a figure lies above 1.15, which is a loss of
more than 15 % with confidence. It is 0 if the interval includes 1.15: more --rounds make it
narrower. It is 2 if the comparison failed. Figures of processor time depend least on other work.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import traceback
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import psutil

from benchmarks.compare.checkouts import Checkout, commit_of, prepare
from benchmarks.compare.figures import GROUPS, Work, measure, work
from benchmarks.compare.ratios import Ratio, ratio
from benchmarks.fresh_texts import FreshTexts
from callslip.errors import CallslipError, StartError
from callslip.evals.tables import table, tell
from callslip.models.e5.tokens import Tokenizer

ROUNDS = 6

TRIES = 3
"""To start a stack."""

EXAMPLES = """examples:
  make bench-compare REV=main              did this checkout lose speed? (two minutes a round)
  make bench-compare REV=main ONLY="search memory" ROUNDS=10
  python -m benchmarks.compare v1 v2       two commits, tags or branches
  CALLSLIP_EMBEDDER__KIND=none make bench-compare REV=main
                                           the chain without its embedder: its losses show"""

Rounds = dict[str, tuple[list[float], list[float]]]
"""The old and the new repeats of each figure."""


def main() -> None:
    """Measure and print a table; exit with 1 after a loss, with 2 after a failure."""
    options = _options()
    try:
        old, new = commit_of(options.old), commit_of(options.new)
        with tempfile.TemporaryDirectory(prefix="callslip-compare-") as folder:
            checkouts = [
                prepare(commit, Path(folder) / name)
                for commit, name in ((old, "old"), (new, "new"))
            ]
            texts = FreshTexts(Tokenizer(Path(folder)))
            rounds = _measured(checkouts, texts, options.only, options.rounds)
        ratios = {name: ratio(*both) for name, both in rounds.items()}
    except CallslipError as error:
        _fail(f"{error.detail}\n{error.advice}")
    except subprocess.CalledProcessError as error:
        _fail(f"{error}\n{error.stderr or ''}")
    except Exception:  # its exit code would be that of a loss
        _fail(traceback.format_exc())
    print(f"old {old[:12]}, new {new[:12]}, {options.rounds} rounds", end="\n\n")
    print(_table(rounds, ratios))
    losses = [name for name, each in ratios.items() if each.is_loss]
    if losses:
        sys.exit(f"\nA loss of more than 15 % with confidence: {', '.join(losses)}")


def _fail(reason: str) -> NoReturn:
    print(reason, file=sys.stderr)
    sys.exit(2)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("old", metavar="REV", help="the commit to compare with")
    parser.add_argument(
        "new",
        metavar="NEW",
        nargs="?",
        help="default: this checkout with its changes of tracked files",
    )
    parser.add_argument(
        "--rounds", type=_rounds, default=ROUNDS, metavar="N", help=f"2 or more (default {ROUNDS})"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=GROUPS,
        default=list(GROUPS),
        help="measure these: " + "; ".join(f"{name}: {text}" for name, text in GROUPS.items()),
    )
    return parser.parse_args()


def _rounds(text: str) -> int:
    if (rounds := int(text)) < 2:
        raise argparse.ArgumentTypeError("an interval needs two rounds or more")
    return rounds


def _measured(
    checkouts: Sequence[Checkout], texts: FreshTexts, groups: Sequence[str], rounds: int
) -> Rounds:
    """Measure both checkouts in turns; the one that begins changes with each round."""
    repeats: Rounds = defaultdict(lambda: ([], []))
    for number in range(rounds):
        todo = work(texts)
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            tell(
                f"Round {number + 1} of {rounds}, {('old', 'new')[side]},"
                f" load {psutil.getloadavg()[0]:.1f}"
            )
            for name, value in _started(checkouts[side], todo, groups).items():
                repeats[name][side].append(value)
    return repeats


def _started(checkout: Checkout, todo: Work, groups: Sequence[str]) -> dict[str, float]:
    """Measure, again if the stack does not start in time: a busy machine may be the reason."""
    for _ in range(TRIES - 1):
        try:
            return measure(checkout, todo, groups)
        except StartError as error:
            tell(f"Once more: {error.detail.splitlines()[0]}")
    return measure(checkout, todo, groups)


def _table(rounds: Rounds, ratios: dict[str, Ratio]) -> str:
    rows = []
    for name, each in ratios.items():
        old, new = (f"{statistics.median(repeats):.4g}" for repeats in rounds[name])
        interval = f"{each.low:.2f} to {each.high:.2f}"
        rows.append((name, old, new, f"{each.ratio:.2f}", interval, each.verdict))
    head = ("figure", "old", "new", "new ÷ old", "95 % interval", "verdict")
    return table(head, rows)


if __name__ == "__main__":
    main()
