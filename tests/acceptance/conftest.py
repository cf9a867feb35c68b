"""One running Callslip for the acceptance tests, which share what it ingested."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from judged_parts import LEARNING, Held, Hold, Measure, Tell, folder_of, part_of, tend
from stack import Stack, new_home

from benchmarks.quality.table import Quality, compare
from callslip.evals.beir import JudgedSet
from callslip.evals.client import JsonClient
from callslip.evals.judge import ingested, scratch_name
from callslip.evals.variants import HYBRID, KEYWORD, VARIANTS, teach_half_of_the_answers

FACETS = "domain,act,status,group"
"""Facets of ko_autorag, ko_law_versions and en_rfc_small, and one that says nothing."""

BY_WORDS = ("own_ko", "ko_autorag")
"""The sets whose keyword retriever is measured by itself."""

SHORT = 30
"""Passages that hold the ten best documents."""


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Stack]:
    home = new_home(tmp_path_factory, models_dir)
    settings = {"CALLSLIP_FACETS__NAMES": FACETS, "CALLSLIP_AGENT__READER": "true"}
    stack = Stack(home, settings).start()
    yield stack
    stack.stop()


@pytest.fixture(scope="session")
def client(stack: Stack) -> Iterator[JsonClient]:
    with JsonClient(stack.url) as client:
        yield client


@pytest.fixture(scope="session")
def held(client: JsonClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hold]:
    """Ingests a judged set, or its part, once, and keeps it until the end."""
    parts = tmp_path_factory.mktemp("parts")
    with ExitStack() as kept:

        @cache
        def hold(name: str) -> Held:
            if not (folder := folder_of(name)).is_dir():
                pytest.skip(f"the judged set {name} is not here: {folder}")
            judged, collection = part_of(name, parts / name), scratch_name(name)
            ids = kept.enter_context(ingested(client, collection, judged, []))
            return Held(collection, judged, ids)

        yield hold


@pytest.fixture(scope="session")
def measured(stack: Stack, client: JsonClient, held: Hold) -> Measure:
    """Measures a set once: hybrid, with the prior, with memory of other questions, one by words."""

    def taught(
        client: JsonClient, collection: str, judged: JudgedSet, ids: dict[str, str]
    ) -> JudgedSet:
        others = teach_half_of_the_answers(client, collection, judged, ids)
        known = client.get(f"/v1/collections/{collection}/memory", limit=1)["chunks"]
        assert known >= len({d for grades in judged.qrels.values() for d in grades}) / 10
        tend(stack)
        return others

    by_name = {way.name: replace(way, top=SHORT) for way in VARIANTS}
    by_name[LEARNING] = replace(by_name[LEARNING], prepare=taught)
    ways = [by_name[name] for name in (HYBRID.name, "hybrid + prior", LEARNING)]

    @cache
    def measure(name: str) -> Quality:
        part = held(name)
        words = [by_name[KEYWORD.name]] if name in BY_WORDS else []
        return compare(client, part.collection, part.judged, part.ids, words + ways)

    return measure


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Tell:
    """Prints an effect size, whether the test passes or not."""

    def say(text: str) -> None:
        with capsys.disabled():
            sys.stderr.write(f"\n{text}\n")

    return say
