"""`python -m benchmarks.speed.enrichment FOLDER…`: the step enrich, and spaCy's own recognizer.

Cuts the files of these folders into chunks, then enriches each document in this process and finds
its English names with spaCy's own recognizer, in turns. A folder may also be a judged set. The
seconds are processor time, the best of the rounds, because other work only adds time.
"""

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.speed.folders import FILES, gather
from callslip.config.settings import ChunkingSettings, ExtractSettings, Settings
from callslip.errors import CallslipError
from callslip.evals.tables import table, tell
from callslip.ingestion.chunks.chunk import chunk
from callslip.ingestion.enrich import Input, Source, Tools, enrich
from callslip.ingestion.isolation.process import Extractor
from callslip.ingestion.sections.sectionize import sectionize
from callslip.languages.ko.morphemes import MORPHEMES, RECENT
from callslip.messages.options import Options
from callslip.models.entities import Recognizer
from callslip.models.entities.english import pipeline
from callslip.models.entities.tagger import Tagger
from callslip.models.registry import make_tokenizer
from callslip.models.text.analyzer import Analyzer
from callslip.models.text.language import lang

PAGE_CHARS = 3000
"""The characters of a page, for formats without pages."""

ROUNDS = 3

WARM_UP = ("The Department of Health in London.", "서울특별시 공무원")


@dataclass
class Spent:
    """Processor seconds for the documents of a folder."""

    folder: str
    pages: int = 0
    chunks: int = 0
    enrich: float = 0.0
    ours: float = 0.0
    """Of `enrich`: the English names."""
    spacy: float = 0.0
    """The English names by spaCy's own recognizer."""

    @property
    def before(self) -> float:
        """What the step would take with spaCy's own recognizer."""
        return self.enrich - self.ours + self.spacy


def main() -> None:
    """Measure and print; after a failure, print the reason and exit with 1."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.enrichment", description=__doc__
    )
    parser.add_argument("folders", type=Path, nargs="+", help="of files, or judged sets")
    parser.add_argument("--files", type=int, default=FILES, help="most of all folders together")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="callslip-bench-files-") as scratch:
            each = -(-options.files // len(options.folders))
            files = {folder: gather([folder], each, Path(scratch)) for folder in options.folders}
            print(shown(measure(files)))
    except CallslipError as error:
        sys.exit(f"{error.detail}\n{error.advice}")


def measure(files: dict[Path, list[Path]]) -> list[Spent]:
    """Time the documents of each folder."""
    tools, tagger, spacy = Tools(Analyzer(), Recognizer()), Tagger(pipeline()), pipeline()
    for text in WARM_UP:
        tools.analyzer.analyze(text)
        list(tools.recognizer.find([text]))
    results = []
    for folder, paths in files.items():
        spent = Spent(folder.name)
        for source, document in _documents(paths, tools):
            extracted = source.extracted
            texts = [text for c in document.chunks if lang(text := c.read(extracted.text)) == "en"]
            works: tuple[Callable[[], object], ...] = (
                partial(enrich, [document]),
                partial(_read, tagger.find, texts),
                partial(_read, spacy.pipe, texts),
            )
            rounds = [[_seconds(work) for work in works] for _ in range(ROUNDS)]
            best = [min(times) for times in zip(*rounds, strict=True)]
            spent.pages += len(extracted.pages) or math.ceil(len(extracted.text) / PAGE_CHARS)
            spent.chunks += len(document.chunks)
            spent.enrich, spent.ours, spent.spacy = (
                a + b for a, b in zip((spent.enrich, spent.ours, spent.spacy), best, strict=True)
            )
        tell(f"{spent.folder}: {spent.chunks} chunks")
        results.append(spent)
    return results


def _documents(paths: Sequence[Path], tools: Tools) -> Iterator[tuple[Source, Input]]:
    tokenizer = make_tokenizer(Settings())
    with Extractor(ExtractSettings()) as extractor:
        for path in paths:
            try:
                extracted = extractor.extract(path.read_bytes(), path.name)
            except CallslipError:
                continue
            cut = chunk(
                extracted.text,
                sectionize(extracted),
                tokenizer,
                ChunkingSettings(),
                path.name,
                extracted.blocks,
            )
            source = Source(extracted, path.name, {})
            yield source, Input(source, cut, Options.model_validate({}), tools)


def _read(find: Callable[[Sequence[str]], Iterable[object]], texts: Sequence[str]) -> int:
    return sum(1 for _ in find(texts))


def _seconds(work: Callable[[], object]) -> float:
    for n in range(RECENT):  # the morphemes of the round before are forgotten
        MORPHEMES.get().of(f"{n}회")
    started = time.thread_time()
    work()
    return time.thread_time() - started


def shown(results: Sequence[Spent]) -> str:
    """Return the rates as a table."""
    every = Spent("all")
    for each in results:
        for name in ("pages", "chunks", "enrich", "ours", "spacy"):
            setattr(every, name, getattr(every, name) + getattr(each, name))
    rows = [
        (
            each.folder,
            f"{each.pages:,}",
            f"{each.chunks:,}",
            f"{1000 * each.before / each.chunks:.1f}",
            f"{1000 * each.enrich / each.chunks:.1f}",
            f"{each.pages / each.enrich:.0f}",
            f"{each.before / each.enrich:.2f}",
            f"{each.spacy / each.ours:.2f}" if each.ours > 0.01 else "",
        )
        for each in (*results, every)
    ]
    head = (
        *("Enrichment", "pages", "chunks", "ms a chunk with spaCy's own", "ms a chunk"),
        *("pages/s", "ratio", "English names alone"),
    )
    return table(head, rows)


if __name__ == "__main__":
    main()
