"""Questions with the passages that answer them, from two public data sets of free licence.

TyDi QA, gold passages (Clark et al. 2020, Apache-2.0): English and Korean questions of people who
did not know the answer, with the span of the answer. SelQA (Jurczyk et al. 2016, Apache-2.0):
English questions about sections of articles, with the sentences that answer them.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

LANGUAGES = {"english": "en", "korean": "ko"}

SHINGLE = 8
"""The number of words of the pieces that two texts are compared by."""

SHARED = 2
"""The number of equal pieces from which a passage counts as a copy of a judged text."""

LONGEST = 6000
"""The maximum number of characters of a section; SelQA has few longer ones."""

Part = Literal["train", "dev"]
Span = tuple[int, int]


@dataclass(frozen=True)
class Paragraph:
    """A passage of an article. `source` is the name of the data set and the language."""

    title: str
    text: str
    source: str


@dataclass(frozen=True)
class Question:
    """A question, its passage, and the spans of the passage that answer it, in characters."""

    text: str
    passage: Paragraph
    spans: tuple[Span, ...]
    lang: str
    part: Part


def tydi(folder: Path) -> Iterator[Question]:
    """Read `<language>_tydiqa_<part>.json` of both languages and both parts."""
    parts: tuple[Part, ...] = ("train", "dev")
    for language, lang in LANGUAGES.items():
        for part in parts:
            file = folder / language / f"{language}_tydiqa_{part}.json"
            for article in json.loads(file.read_text("utf-8"))["data"]:
                for paragraph in article["paragraphs"]:
                    passage = Paragraph(article["title"], paragraph["context"], f"tydi-{lang}")
                    for qa in paragraph["qas"]:
                        spans = tuple(_spans(passage.text, qa["answers"]))
                        if spans:
                            yield Question(qa["question"], passage, spans, lang, part)


def _spans(text: str, answers: Iterable[dict[str, object]]) -> Iterator[Span]:
    """The spans of the answers; where the offset counts bytes, the nearest equal text."""
    for answer in answers:
        words, start = str(answer["text"]), int(str(answer["answer_start"]))
        starts = [m.start() for m in re.finditer(re.escape(words), text)]
        if starts:
            at = min(starts, key=lambda s: abs(s - start))
            yield at, at + len(words)


def selqa(folder: Path) -> Iterator[Question]:
    """Read `selqa-ass-dev.json` and `selqa-ass-test.json`, both for training."""
    for part in ("dev", "test"):
        for item in json.loads((folder / f"selqa-ass-{part}.json").read_text("utf-8")):
            text, spans = "", []
            for number, sentence in enumerate(item["candidates"]):
                text += " " if text else ""
                start = len(text)
                text += sentence.strip()
                if number in item["answers"]:
                    spans.append((start, len(text)))
            if spans and len(text) <= LONGEST:
                passage = Paragraph(item["article"], text, "selqa-en")
                yield Question(item["question"], passage, tuple(spans), "en", "train")


def without_judged(questions: Iterable[Question], judged: Iterable[str]) -> list[Question]:
    """Leave out all questions about an article of which a passage stands in a judged text."""
    shingles = {s for text in judged for s in _shingles(text)}
    questions = list(questions)
    passages = {question.passage for question in questions}
    gone = {p.title for p in passages if len(_shingles(p.text) & shingles) >= SHARED}
    return [question for question in questions if question.passage.title not in gone]


def _shingles(text: str) -> set[str]:
    words = re.findall(r"\w+", text.lower())
    return {" ".join(words[i : i + SHINGLE]) for i in range(len(words) - SHINGLE + 1)}
