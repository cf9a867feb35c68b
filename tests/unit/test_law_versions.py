"""Real laws through their real versions: what an amendment leaves alone is not cut anew."""

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from pipeline_parts import Words

from config.settings import ChunkingSettings
from ingestion.chunk import NEVER_CUT, chunk
from ingestion.former import FormerCuts
from ingestion.parts import Chunk, ExtractedText
from ingestion.sectionize import sectionize

CORPUS = (
    Path(__file__).resolve().parents[2].parent
    / "shared"
    / "data"
    / "ko_law_versions"
    / "corpus.jsonl"
)
EDITIONS_OF_AN_ACT = 12

pytestmark = pytest.mark.skipif(not CORPUS.exists(), reason=f"{CORPUS} is not here")


def editions() -> dict[str, list[list[str]]]:
    """The last editions of each act, oldest first, as lists of articles in their order."""
    acts: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in CORPUS.read_text(encoding="utf-8").splitlines():
        article = json.loads(line)
        acts[article["metadata"]["act"]].append(article)
    found = {}
    for act, articles in acts.items():
        articles.sort(key=lambda a: [int(n) for n in re.findall(r"\d+", a["metadata"]["article"])])
        days = sorted({a["metadata"]["valid_from"] for a in articles})[-EDITIONS_OF_AN_ACT:]
        found[act] = [
            [
                f"{a['title'].removeprefix(act).strip()}\n{a['text']}"
                for a in articles
                if a["metadata"]["valid_from"] <= day < (a["metadata"]["valid_to"] or "9999")
            ]
            for day in days
        ]
    return found


def cut(text: str, former: FormerCuts = NEVER_CUT) -> list[Chunk]:
    sections = sectionize(ExtractedText(text, "text/plain"))
    return chunk(text, sections, Words(), ChunkingSettings(), "d", former=former)


def test_an_amendment_changes_the_chunks_of_its_articles_and_few_others() -> None:
    changed_articles = changed_chunks = all_chunks = 0
    for articles in editions().values():
        text, chunks, before = "", list[Chunk](), set[str]()
        for edition in articles:
            new = "\n\n".join(edition)
            after = cut(new, FormerCuts(text, chunks)) if text else cut(new)
            if text:
                old = {text[c.start : c.end] for c in chunks}
                changed = sum(new[c.start : c.end] not in old for c in after)
                amended = len(set(edition) - before) + len(before - set(edition))
                words = sum(len(article.split()) for article in set(edition) - before)
                assert changed <= 3 * amended + words // 200  # long ones are amended all over
                changed_articles += amended
                changed_chunks += changed
                all_chunks += len(after)
            text, chunks, before = new, after, set(edition)
    assert changed_chunks < 0.5 * all_chunks, (changed_chunks, changed_articles, all_chunks)
    assert changed_chunks < 1.5 * changed_articles, (changed_chunks, changed_articles, all_chunks)
