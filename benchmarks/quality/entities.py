"""Precision and recall of the entities on labelled passages.

`python -m benchmarks.quality.entities`
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from callslip.models.entities import Recognizer

FOLDER = Path(__file__).parents[2] / "tests" / "data"
LANGUAGES = ("en", "ko")


@dataclass(frozen=True)
class Passage:
    """A text and its labels, each once: the words of an entity and its kind."""

    text: str
    labels: frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Score:
    """The numbers of recognized entities, of correct ones among them, and of labelled entities."""

    recognized: int
    right: int
    labelled: int

    @property
    def precision(self) -> float:
        """The share of the recognized entities that are correct; 1 if none was recognized."""
        return self.right / self.recognized if self.recognized else 1.0

    @property
    def recall(self) -> float:
        """The share of the labelled entities that were recognized; 1 if none is labelled."""
        return self.right / self.labelled if self.labelled else 1.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return (
            2 * self.right / (self.recognized + self.labelled)
            if self.recognized + self.labelled
            else 1.0
        )


def read(lang: str, folder: Path = FOLDER) -> list[Passage]:
    """Read the labelled passages of a language."""
    lines = (folder / f"entities_{lang}.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return [
        Passage(row["text"], frozenset((row["text"][a:b], kind) for a, b, kind in row["entities"]))
        for row in rows
    ]


def measure(passages: Sequence[Passage], recognizer: Recognizer) -> dict[str, Score]:
    """Return the scores by kind, and for `all` kinds by words and for `typed` by words and kind.

    An entity counts once for each passage, as it does in the field `entities` of a chunk.
    """
    recognized, right, labelled = Counter[str](), Counter[str](), Counter[str]()
    for passage, entities in zip(
        passages, recognizer.find([p.text for p in passages]), strict=True
    ):
        seen = {(passage.text[e.start : e.end], e.kind) for e in entities}
        for name, pairs in (("recognized", seen), ("labelled", passage.labels)):
            count = recognized if name == "recognized" else labelled
            count.update(kind for _, kind in pairs)
            count.update(typed=len(pairs), all=len({words for words, _ in pairs}))
        right.update(kind for _, kind in seen & passage.labels)
        right.update(
            typed=len(seen & passage.labels),
            all=len({words for words, _ in seen} & {words for words, _ in passage.labels}),
        )
    return {
        name: Score(recognized[name], right[name], labelled[name]) for name in recognized | labelled
    }


def misses(passages: Sequence[Passage], recognizer: Recognizer) -> Iterable[str]:
    """Iterate over the passages with mistakes: extra entities (+) and missing ones (-)."""
    for passage, entities in zip(
        passages, recognizer.find([p.text for p in passages]), strict=True
    ):
        seen = {(passage.text[e.start : e.end], e.kind) for e in entities}
        extra = [f"+{words} ({kind})" for words, kind in sorted(seen - passage.labels)]
        lacking = [f"-{words} ({kind})" for words, kind in sorted(passage.labels - seen)]
        if extra or lacking:
            yield "  ".join([*extra, *lacking])


def main() -> None:
    """Print the scores; with `--misses`, print the mistakes too."""
    recognizer = Recognizer()
    for lang in LANGUAGES:
        passages = read(lang)
        for part, some in (("all", passages), ("held out", passages[1::2])):
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
