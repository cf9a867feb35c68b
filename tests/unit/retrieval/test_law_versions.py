"""Laws through their versions, real and made up: what an amendment leaves alone is not cut anew."""

import json
import random
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pipeline_parts import Words

from callslip.config.settings import ChunkingSettings
from callslip.ingestion.chunks.chunk import NEVER_CUT, chunk
from callslip.ingestion.chunks.previous_cuts import PreviousCuts
from callslip.ingestion.sections.sectionize import sectionize
from callslip.ingestion.values import Chunk, ExtractedText

ROOT = Path(__file__).resolve().parents[3]
CORPUS = ROOT.parent / "shared" / "data" / "ko_law_versions" / "corpus.jsonl"
EDITIONS_OF_AN_ACT = 12


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


def cut(text: str, previous: PreviousCuts = NEVER_CUT) -> list[Chunk]:
    sections = sectionize(ExtractedText(text, "text/plain"))
    return chunk(text, sections, Words(), ChunkingSettings(), "d", previous=previous)


def made_up() -> dict[str, list[list[str]]]:
    """The editions of an ordinance of no town, each of which amends a few of its articles."""
    dice = random.Random(7)
    subjects = (
        "시장은",
        "구청장은",
        "신청인은",
        "위원회는",
        "보호자는",
        "사업자는",
        "담당 공무원은",
    )
    matters = (
        "수당의 지급을",
        "주차장의 사용을",
        "교육의 위탁을",
        "시설의 점검을",
        "서류의 보관을",
    )
    duties = ("신청하여야 한다.", "정할 수 있다.", "알려야 한다.", "마쳐야 한다.", "미룰 수 없다.")

    def article(number: int) -> str:
        paragraphs = [
            f"{mark} {dice.choice(subjects)} 제{dice.randrange(1, 60)}조에 따라"
            f" {dice.randrange(3, 90)}일 안에 {dice.choice(matters)}"
            f" 서면이나 전자문서로 {dice.choice(duties)}"
            for mark in "①②③④⑤⑥"
        ]
        return f"제{number}조({dice.choice(matters)[:-1]})\n" + "\n".join(paragraphs)

    edition = [article(number) for number in range(1, 61)]
    found = [edition]
    for _ in range(EDITIONS_OF_AN_ACT - 1):
        edition = list(edition)
        for number in dice.sample(range(1, 61), 4):
            edition[number - 1] = article(number)
        found.append(edition)
    return {"어느 시의 조례": found}


@pytest.mark.long
@pytest.mark.parametrize(
    "editions",
    [
        pytest.param(made_up, id="made up"),
        pytest.param(
            editions,
            id="ko_law_versions",
            marks=pytest.mark.skipif(not CORPUS.exists(), reason=f"{CORPUS} is not here"),
        ),
    ],
)
def test_an_amendment_changes_the_chunks_of_its_articles_and_few_others(
    editions: Callable[[], dict[str, list[list[str]]]],
) -> None:
    changed_articles = changed_chunks = all_chunks = 0
    for articles in editions().values():
        text, chunks, before = "", list[Chunk](), set[str]()
        for edition in articles:
            new = "\n\n".join(edition)
            after = cut(new, PreviousCuts(text, chunks)) if text else cut(new)
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
