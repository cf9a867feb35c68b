"""Precision and recall of the entities on labelled passages: `python -m evals.entities`."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from models.entities import Recognizer

FOLDER = Path(__file__).parents[1] / "tests" / "data"
LANGUAGES = ("en", "ko")


@dataclass(frozen=True)
class Passage:
    """A text and its labels: (what stands there, kind), each once."""

    text: str
    labels: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Score:
    """How many were found, how many of these were labelled, and how many were labelled."""

    found: int
    right: int
    labelled: int

    @property
    def precision(self) -> float:
        """The share of what was found that is right; 1 where nothing was found."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """The share of what was labelled that was found; 1 where nothing was labelled."""
        return self.right / self.labelled if self.labelled else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.right / (self.found + self.labelled) if self.found + self.labelled else 1.0


def read(lang: str, folder: Path = FOLDER) -> list[Passage]:
    """The labelled passages of a language."""
    lines = (folder / f"entities_{lang}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [
        Passage(row["text"], frozenset((row["text"][a:b], kind) for a, b, kind in row["entities"]))
        for row in rows
    ]


def measure(passages: Sequence[Passage], recognizer: Recognizer) -> dict[str, Score]:
    """Scores by kind; `all` asks for the same words, `typed` for the same kind too.

    An entity counts once for each passage, as it does in the field `entities` of a chunk.
    """
    found, right, labelled = Counter[str](), Counter[str](), Counter[str]()
    for passage, entities in zip(
        passages, recognizer.find([p.text for p in passages]), strict=True
    ):
        seen = {(passage.text[e.start : e.end], e.kind) for e in entities}
        for name, pairs in (("found", seen), ("labelled", passage.labels)):
            count = found if name == "found" else labelled
            count.update(kind for _, kind in pairs)
            count.update(typed=len(pairs), all=len({words for words, _ in pairs}))
        right.update(kind for _, kind in seen & passage.labels)
        right.update(
            typed=len(seen & passage.labels),
            all=len({words for words, _ in seen} & {words for words, _ in passage.labels}),
        )
    return {name: Score(found[name], right[name], labelled[name]) for name in found | labelled}


def misses(passages: Sequence[Passage], recognizer: Recognizer) -> Iterable[str]:
    """What was found without a label (+) and labelled without being found (-)."""
    for passage, entities in zip(
        passages, recognizer.find([p.text for p in passages]), strict=True
    ):
        seen = {(passage.text[e.start : e.end], e.kind) for e in entities}
        extra = [f"+{words} ({kind})" for words, kind in sorted(seen - passage.labels)]
        lacking = [f"-{words} ({kind})" for words, kind in sorted(passage.labels - seen)]
        if extra or lacking:
            yield "  ".join([*extra, *lacking])


def main() -> None:
    """Print the figures; `--misses` prints the mistakes too."""
    recognizer = Recognizer()
    for lang in LANGUAGES:
        passages = read(lang)
        for part, some in (("all", passages), ("held back", passages[1::2])):
            scores = measure(some, recognizer)
            print(f"{lang}, {part}: {len(some)} passages")
            for kind in sorted(scores, key=lambda k: (k in ("all", "typed"), k)):
                score = scores[kind]
                print(
                    f"  {kind:13} P {score.precision:.3f}  R {score.recall:.3f}"
                    f"  F1 {score.f1:.3f}  ({score.labelled} labelled)"
                )
        if "--misses" in sys.argv:
            print("\n".join(misses(passages[::2], recognizer)))


if __name__ == "__main__":
    main()
