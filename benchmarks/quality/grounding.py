"""The validator of answers, measured on written replies: `python -m benchmarks.quality.grounding`.

tests/data/grounding has sentences that a language model could write about passages of this project:
good paraphrases (`s`), what makes each of them wrong (a number, an entity, a negation, a claim that
the passage does not make), and commands of passages with what an obedient model replies. Nothing
here calls a language model.
"""

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from callslip.agent.nodes.validator import Passages, supports
from callslip.config import load
from callslip.evals.tables import table
from callslip.models.embedders.contract import Embedder
from callslip.models.entities import Recognizer
from callslip.models.registry import make_embedder
from callslip.models.text.analyzer import Analyzer

ROOT = Path(__file__).parents[2]
DATA, JUDGED = ROOT / "tests/data/grounding", ROOT / "tests/data/judged"
EXAMPLES = ROOT / "examples/documents"

SEED, EACH = 20, 60
"""The seed of the halves and of the draws, and the cases of each class in each language."""

Half = Literal["design", "check"]
Counts = Mapping[tuple[str, str, Half], Counter[bool]]
"""By class, language and half, how many sentences are stopped and are not."""

KINDS = {
    "paraphrase": "good paraphrases",
    "number": "wrong numbers",
    "entity": "swapped entities",
    "negation": "negation flipped",
    "claim": "unsupported claims",
    "citation": "right claim, wrong citation",
    "language": "answer in another language",
    "command": "instruction of a passage obeyed",
}
LANGUAGES = {"en": "What are the rules?", "ko": "규정은 어떻게 되나요?"}
"""A question in each language of the suite."""

_FAULTS = {"n": "number", "e": "entity", "g": "negation", "u": "claim"}
_HEADINGS = {
    ".md": re.compile(r"^#+ (.+)$", re.M),
    ".txt": re.compile(r"^(\d+(?:\.\d+)*\.? .+)$", re.M),
}


@dataclass(frozen=True)
class Case:
    """A sentence of a reply with the passages that it cites."""

    kind: str
    lang: str
    half: Half
    question: str
    sentence: str
    passages: tuple[str, ...]


def cases() -> list[Case]:
    """Return the suite: EACH cases of each class and language, all paraphrases, always the same.

    The cases of one passage are in the same half.
    """
    passages, drawn = _passages(), random.Random(SEED)  # noqa: S311
    half_of = _halves([*passages, *(line["c"] for line in _lines("commands"))])
    every: list[Case] = []
    for lang, question in LANGUAGES.items():
        other = next(text for code, text in LANGUAGES.items() if code != lang)
        made: dict[str, list[Case]] = {kind: [] for kind in KINDS}
        written = _lines(lang)
        cited = sorted({line["p"] for line in written})
        for number, line in enumerate(written):
            half, sentence = half_of[line["p"]], line["s"]
            own = _chunk(line["p"], passages, neighbours=number % 2)
            related = [p for p in cited if p != line["p"] and _source(p) == _source(line["p"])]
            for kind, text, asks, about in (
                ("paraphrase", sentence, question, own),
                *((kind, text, question, own) for kind, text in _faulty(line)),
                ("citation", sentence, question, passages[drawn.choice(related)]),
                ("language", sentence, other, own),
            ):
                made[kind].append(Case(kind, lang, half, asks, text, (about,)))
        for command in _lines("commands"):
            if command["l"] == lang:
                base = drawn.choice(written)
                about, half = f"{passages[base['p']]} {command['c']}", half_of[command["c"]]
                made["command"] += (
                    Case("command", lang, half, question, text, (about,)) for text in command["r"]
                )
        for kind in KINDS:
            drawn.shuffle(made[kind])
            every += made[kind] if kind == "paraphrase" else made[kind][:EACH]
    return every


def _halves(names: Sequence[str]) -> dict[str, Half]:
    drawn = random.Random(SEED).sample(names, len(names))  # noqa: S311
    return {name: "design" if n % 2 else "check" for n, name in enumerate(drawn)}


def _faulty(line: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The wrong sentences of a line, with their classes."""
    sentence = line["s"]
    for key, kind in _FAULTS.items():
        for fault in line.get(key, ()):
            old, _, new = fault.partition("|")
            if key != "u":
                yield kind, sentence.replace(old, new, 1)
            else:
                yield kind, sentence[:-1] + fault + "." if fault[0] in " ," else fault


def _passages() -> dict[str, str]:
    """Texts by name: documents of the judged sets, and sections of the examples."""
    texts = {}
    for lang in LANGUAGES:
        for line in (JUDGED / f"own_{lang}/corpus.jsonl").read_text("utf-8").splitlines():
            document = json.loads(line)
            texts[document["_id"]] = f"{document['title']}\n{document['text']}"
    for name in sorted({line["p"] for lang in LANGUAGES for line in _lines(lang)} - set(texts)):
        texts[name] = _section(*name.split("#"))
    return texts


def _chunk(name: str, passages: Mapping[str, str], *, neighbours: int) -> str:
    """The passage with so many others before and behind it, as in a chunk of a longer document."""
    names = [each for each in passages if _source(each) == _source(name)]
    at = names.index(name)
    return "\n\n".join(
        passages[each] for each in names[max(0, at - neighbours) : at + neighbours + 1]
    )


def _section(file: str, heading: str) -> str:
    data = (EXAMPLES / file).read_bytes()
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("cp949")
    text = text.replace("\r\n", "\n")
    starts = [*_HEADINGS[Path(file).suffix].finditer(text)]
    at = next(n for n, match in enumerate(starts) if match[1] == heading)
    end = starts[at + 1].start() if at + 1 < len(starts) else len(text)
    title = text.strip().splitlines()[0]
    return f"{title}\n{text[starts[at].start() : end].strip()}"


def _lines(name: str) -> list[dict[str, Any]]:
    text = (DATA / f"{name}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _source(passage: str) -> str:
    return passage.partition("#")[0].rstrip("0123456789")


def measure(embedder: Embedder) -> Counts:
    """Count, by class, language and half, the sentences that the validator stops."""
    analyzer, recognizer = Analyzer(), Recognizer()
    counts: dict[tuple[str, str, Half], Counter[bool]] = defaultdict(Counter)
    for case in cases():
        passages = Passages(case.passages)
        approved = supports(passages, case.sentence, case.question, analyzer, embedder, recognizer)
        counts[case.kind, case.lang, case.half][not approved] += 1
    return counts


def rate(counts: Counts, kind: str, *only: str) -> float:
    """Return the share of stopped sentences of a class, in all languages and halves or in some."""
    chosen = [each for key, each in counts.items() if key[0] == kind and {*only} <= {*key}]
    return sum(each[True] for each in chosen) / sum(each.total() for each in chosen)


def report(counts: Counts) -> str:
    """Return a Markdown table of the shares."""
    parts: tuple[tuple[str, ...], ...] = ((), ("design",), ("check",), ("en",), ("ko",))
    rows = []
    for kind, name in KINDS.items():
        total = sum(count.total() for key, count in counts.items() if key[0] == kind)
        rates = (f"{rate(counts, kind, *only):.3f}".removeprefix("0") for only in parts)
        rows.append((name, str(total), *rates))
    return table(("replies", "number", "stopped", "design", "check", "English", "Korean"), rows)


def main() -> None:
    """Print the table, with the embedder of the settings."""
    print(report(measure(make_embedder(load().settings))))


if __name__ == "__main__":
    main()
