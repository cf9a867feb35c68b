"""Makes the training pairs: a question with a text that answers it, or with one that does not.

`python -m training.pairs --tydi FOLDER --selqa FOLDER --judged SET… --models FOLDER OUT`

For each question: its passage, sometimes with another passage before or after it; its passage
without the sentences of the answer; another section of the article, if there is one; and a passage
that a search by vectors returns for the question, of another article and without the answer's
words.
"""

import argparse
import pickle
import random
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from callslip.evals import beir
from callslip.models.e5.tokens import Tokenizer
from callslip.models.e5.weights import Weights
from callslip.models.embedders.local import E5Embedder
from callslip.models.reader.reader import HEADING, QUESTION
from callslip.retrieval.evidence.sentences import sentences
from training.questions import Paragraph, Part, Question, Span, selqa, tydi, without_judged

SEED = 11
LONGEST = 248
"""The maximum number of tokens of a pair, for the time of the training."""

TITLED, JOINED = 0.7, 0.3
"""The shares of texts with their title, and of answering passages with another passage beside."""

NEAREST, NEAR = 60, 25
"""The passages that a search returns, and those without the answer that one is drawn from."""

EMBEDDED = 1500
"""The characters of a passage that are embedded for that search."""


@dataclass(frozen=True)
class Pair:
    """A question and a text as token ids.

    `text` is the range of the text's tokens, `answer` the tokens of the answer; it is empty if the
    text does not answer the question.
    """

    ids: list[int]
    text: tuple[int, int]
    answer: list[int]
    lang: str
    part: Part
    kind: str


class Pairs:
    """Makes the pairs of all questions, in the same way for the same seed."""

    def __init__(self, questions: Sequence[Question], models_dir: Path) -> None:
        """`models_dir` is the folder of the prepared encoder."""
        self._tokenizer = Tokenizer(models_dir)
        self._special = Weights.of_wheel().special
        self._random = random.Random(SEED)  # noqa: S311
        self._questions = questions
        self._passages = list(dict.fromkeys(question.passage for question in questions))
        self._embedder = E5Embedder(models_dir, self._tokenizer, threads=2)
        texts = [f"{p.title}\n{p.text}"[:EMBEDDED] for p in self._passages]
        self._vectors = self._embedder.passages(texts)
        self._langs = np.array([p.source[-2:] for p in self._passages])

    def __iter__(self) -> Iterator[Pair]:
        for question in self._questions:
            yield from self._of(question)

    def _of(self, question: Question) -> Iterator[Pair]:
        passage, others = question.passage, self._without_answer(question)
        text, spans = passage.text, list(question.spans)
        if others and self._random.random() < JOINED:
            text, spans = self._joined(text, spans, self._random.choice(others).text)
        yield from self._pair(question, passage.title, text, spans, "answer")
        parts = [text for text in _without(passage.text, question.spans) if text.strip()]
        if parts:
            yield from self._pair(question, passage.title, " ".join(parts), [], "without")
        siblings = [p for p in self._passages if p.title == passage.title and p != passage]
        if siblings and passage.source == "selqa-en":
            section = self._random.choice(siblings)
            yield from self._pair(question, section.title, section.text, [], "section")
        if others:
            other = self._random.choice(others)
            yield from self._pair(question, other.title, other.text, [], "other")

    def _without_answer(self, question: Question) -> list[Paragraph]:
        scores = self._vectors @ self._embedder.query(question.text)
        scores[self._langs != question.lang] = -1
        found = [self._passages[i] for i in np.argsort(-scores)[:NEAREST]]
        answers = [question.passage.text[a:b].lower() for a, b in question.spans]
        return [
            p
            for p in found
            if p.title != question.passage.title
            and not any(len(answer) > 2 and answer in p.text.lower() for answer in answers)
        ][:NEAR]

    def _joined(self, text: str, spans: list[Span], other: str) -> tuple[str, list[Span]]:
        if self._random.random() < 0.5:
            return f"{text}\n{other}", spans
        shift = len(other) + 1
        return f"{other}\n{text}", [(a + shift, b + shift) for a, b in spans]

    def _pair(
        self, question: Question, title: str, text: str, spans: Sequence[Span], kind: str
    ) -> Iterator[Pair]:
        """The pair; none if the answer is outside the tokens that fit."""
        title = title if self._random.random() < TITLED else ""
        prefix = [
            self._special.bos,
            *self._tokenizer.ids(f"query: {question.text}")[:QUESTION],
            self._special.eos,
            *self._tokenizer.ids(f"passage: {title}".rstrip())[:HEADING],
        ]
        ids, offsets = self._tokenizer.ids(text), self._tokenizer.offsets(text)
        room, start = LONGEST - len(prefix) - 1, 0
        if len(ids) > room:
            if spans:
                at = max(0, bisect_right(offsets, spans[0][0]) - 1)
                start = at - self._random.randrange(room // 4, 3 * room // 4)
            else:
                start = self._random.randrange(len(ids) - room + 1)
            start = max(0, min(len(ids) - room, start))
        ends = [*offsets[1:], len(text)]
        first = len(prefix)
        answer = [
            first + i - start
            for i in range(start, min(len(ids), start + room))
            if any(
                offsets[i] < b and a < ends[i] - 1 + (ends[i] - offsets[i] == 1) for a, b in spans
            )
        ]
        shown = ids[start : start + room]
        if not spans or answer:
            yield Pair(
                [*prefix, *shown, self._special.eos],
                (first, first + len(shown)),
                answer,
                question.lang,
                question.part,
                kind,
            )


def _without(text: str, spans: Sequence[Span]) -> list[str]:
    """The sentences without a part of the answer; none if one of them repeats the answer."""
    answers = [text[a:b].lower() for a, b in spans]
    parts = [text[a:b] for a, b in sentences(text) if not any(a < d and c < b for c, d in spans)]
    repeated = any(len(answer) > 1 and answer in " ".join(parts).lower() for answer in answers)
    return [] if repeated else parts


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the pairs to a file."""
    parser = argparse.ArgumentParser(prog="python -m training.pairs", description=__doc__)
    parser.add_argument("--tydi", type=Path, required=True, help="its folder language_data")
    parser.add_argument("--selqa", type=Path, required=True, help="its folder ass")
    parser.add_argument("--judged", type=Path, nargs="*", default=[], help="sets to stay clear of")
    parser.add_argument("--models", type=Path, required=True, help="where the encoder is prepared")
    parser.add_argument("out", type=Path)
    options = parser.parse_args(arguments)
    judged = (d.content for folder in options.judged for d in beir.read(folder).corpus())
    questions = without_judged([*tydi(options.tydi), *selqa(options.selqa)], judged)
    pairs = list(Pairs(questions, options.models))
    options.out.write_bytes(pickle.dumps(pairs))
    print(f"{len(questions):,} questions, {len(pairs):,} pairs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
