"""The sample of a collection's passages: what is read of it, and what is counted."""

import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from memory_store import MemoryStore
from search_parts import a_store, ingest, made_of, make_places

from callslip.config.sections.ranking import SearchSettings
from callslip.retrieval.candidates import calibration
from callslip.retrieval.candidates.calibration import (
    Frequencies,
    ScoreCalibration,
    ScoreCalibrations,
    sample,
)
from callslip.retrieval.candidates.resources import Resources
from callslip.retrieval.evidence.sufficiency import weighed
from callslip.stores.ledger import Ledger


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Resources]:
    monkeypatch.setattr(calibration, "SAMPLE", 2)
    monkeypatch.setattr(calibration, "COUNTED", 5)
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        made = made_of(ledger, MemoryStore(), SearchSettings())
        make_places(made)
        yield made


def read(engine: Resources) -> ScoreCalibration:
    return sample(a_store(engine), engine.ledger, "papers", "")


def test_terms_are_counted_in_more_passages_than_have_their_vectors_read(
    engine: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(8):
        ingest(engine, f"d{n}", [f"d{n}-1"], words="leave card")
    with_vector = []
    get_chunks = a_store(engine).get_chunks

    def counted(*arguments: Any, **options: Any) -> Any:
        with_vector.append(options["include_vector"])
        return get_chunks(*arguments, **options)

    monkeypatch.setattr(a_store(engine), "get_chunks", counted)
    taken = read(engine)
    assert with_vector == [True, False, False]
    assert len(taken.vectors[""]) == len(taken.terms) == taken.sample == 2
    assert (taken.counted.passages, taken.passages) == (5, 8)
    assert (taken.frequencies["leave"], taken.counted.of["leave"]) == (2, 5)


def test_parent_chunks_are_neither_counted_nor_compared(engine: Resources) -> None:
    for n in range(4):
        ingest(engine, f"d{n}", [f"d{n}-0"], words="whole", level=0)
        ingest(engine, f"p{n}", [f"p{n}-2"], words="leave")
    taken = read(engine)
    assert (taken.counted.passages, len(taken.terms)) == (4, 2)
    assert (taken.counted.of["leave"], taken.counted.of["whole"]) == (4, 0)


def test_an_empty_collection_has_no_sample(engine: Resources) -> None:
    assert read(engine) == calibration.NO_SAMPLE


def test_the_evidence_of_an_answer_weighs_words_by_the_larger_sample() -> None:
    sampled = ScoreCalibration({}, {"leav": 40}, 40, 400, (), Frequencies({"leav": 40}, 400))
    assert sampled.idf("leav")["leav"] == pytest.approx(math.log(1 + 0.5 / 400.5))
    counted = math.log(1 + 360.5 / 40.5)
    assert sampled.counted_idf("leav")["leav"] == pytest.approx(counted)
    assert weighed(sampled, "leav") == {"leav": pytest.approx(counted)}


def test_during_ingestion_few_questions_wait_for_a_sample_that_is_not_full(
    engine: Resources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "SAMPLE", 4)
    monkeypatch.setattr(calibration, "LEAST", 2)
    now = [0.0]
    monkeypatch.setattr(calibration.time, "monotonic", lambda: now[0])
    samples = ScoreCalibrations(engine.ledger, fresh_seconds=60)

    def size(version: int) -> int:
        return samples.of(a_store(engine), "papers", "", version).sample

    sizes = []
    for n in range(4):
        ingest(engine, f"d{n}", [f"d{n}-1"], words="leave")
        sizes.append(size(version=n))
    assert sizes == [1, 2, 2, 2], "from the second passage on, a sample is used for a while"
    now[0] = 29.0
    assert size(version=3) == 2
    now[0] = 31.0
    assert size(version=3) == 4
