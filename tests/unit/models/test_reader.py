"""The reader: which sentence of a passage answers a question, and whether one does."""

import unicodedata
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from callslip.models.e5 import onnx_graph
from callslip.models.e5.tokens import Tokenizer
from callslip.models.e5.weights import Weights
from callslip.models.reader import reader as module
from callslip.models.reader.contract import Passage
from callslip.models.reader.reader import WINDOW, Reader
from callslip.models.reader.weights import FILE, ReaderWeights
from callslip.retrieval.evidence.sufficiency import READ_BIAS, READ_WEIGHT

LEAVE = Passage(
    "Parental leave",
    [
        "Every employee with a child may take parental leave.",
        "The leave lasts at most fourteen months.",
        "The request is sent to the division eight weeks before the leave begins.",
    ],
)
PARKING = Passage(
    "주차장",
    [
        "시청 주차장은 평일 오전 8시에 문을 엽니다.",
        "처음 30분은 무료이고, 그 뒤에는 10분마다 500원을 받습니다.",
        "장애인 차량은 요금의 절반을 냅니다.",
    ],
)

EVEN = -READ_BIAS / READ_WEIGHT
"""The log odds at which the evidence of a passage is halved."""


@pytest.fixture(scope="module")
def reader(models_dir: Path) -> Reader:
    return Reader(models_dir, Tokenizer(models_dir))


@pytest.mark.parametrize(
    ("question", "passage", "answer"),
    [
        ("How long can I stay at home with my baby?", LEAVE, 1),
        ("How long is parental leave?", LEAVE, 1),
        ("When is the request sent?", LEAVE, 2),
        ("주차 요금은 얼마인가요?", PARKING, 1),
    ],
)
def test_the_sentence_with_the_answer_is_the_most_likely(
    reader: Reader, question: str, passage: Passage, answer: int
) -> None:
    (odds,) = reader.read(question, [passage])
    assert odds.shape == (3,)
    assert int(odds.argmax()) == answer
    assert np.logaddexp.reduce(odds) > EVEN


@pytest.mark.parametrize(
    ("question", "passage"),
    [
        ("Who designed the town hall?", LEAVE),
        ("How much does a night in the hotel cost?", LEAVE),
        ("도서관 대출 기간은 며칠인가요?", PARKING),
    ],
)
def test_a_passage_about_something_else_has_no_answer(
    reader: Reader, question: str, passage: Passage
) -> None:
    (odds,) = reader.read(question, [passage])
    assert np.logaddexp.reduce(odds) < EVEN - 2


def test_a_result_does_not_depend_on_the_other_passages(reader: Reader) -> None:
    question = "How long is parental leave?"
    together = reader.read(question, [PARKING, LEAVE, Passage("", ["Short."])])
    (alone,) = reader.read(question, [LEAVE])
    np.testing.assert_allclose(together[1], alone, atol=1e-3)


def test_decomposed_letters_are_read_as_composed_ones(reader: Reader) -> None:
    question, apart = "주차 요금은 얼마인가요?", partial(unicodedata.normalize, "NFD")
    passage = Passage(apart(PARKING.heading), [*map(apart, PARKING.sentences)])
    (composed,), (decomposed,) = (
        reader.read(question, [PARKING]),
        reader.read(apart(question), [passage]),
    )
    assert np.array_equal(decomposed, composed)


def test_of_a_long_passage_every_sentence_is_read(reader: Reader) -> None:
    others = [f"Paragraph {n} is about the colour of door {n}." for n in range(90)]
    at = 70
    sentences = [*others[:at], LEAVE.sentences[1], *others[at:]]
    (odds,) = reader.read("How long is parental leave?", [Passage("", sentences)])
    assert odds.shape == (len(sentences),)
    assert np.isfinite(odds).all()
    assert int(odds.argmax()) == at


def test_a_sentence_longer_than_the_window_is_read_in_part(reader: Reader) -> None:
    words = "word " * (3 * WINDOW)
    question = "How long? " * WINDOW
    (odds,) = reader.read(question, [Passage("heading " * WINDOW, [words, "A year."])])
    assert np.isfinite(odds).all()


def test_what_has_no_text_has_no_answer(reader: Reader) -> None:
    empty, blank = reader.read("Why?", [Passage("", []), Passage("", [" ", "Because."])])
    assert empty.shape == (0,)
    assert blank[0] == -np.inf
    assert np.isfinite(blank[1])
    assert reader.read("Why?", []) == []


def test_the_trained_tensors_are_read_only_to_build_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[Weights] = []
    monkeypatch.setattr(module, "ReaderWeights", built.append)
    monkeypatch.setattr(onnx_graph, "serialize_reader", lambda _: b"graph")
    assert module._prepare(tmp_path) == module._prepare(tmp_path)
    assert built == [Weights.of_wheel()]


def test_the_trained_tensors_are_a_small_file_over_the_encoders() -> None:
    assert FILE.stat().st_size < 15 * 2**20
    encoder = Weights.of_wheel()
    weights = ReaderWeights(encoder)
    lower, upper = "l0.fi.w", f"l{encoder.shape.layers - 1}.fi.w"
    hidden = encoder.shape.hidden
    np.testing.assert_array_equal(weights.matrix(lower, hidden), encoder.matrix(lower, hidden))
    trained, before = weights.matrix(upper, hidden), encoder.matrix(upper, hidden)
    assert trained.shape == before.shape
    assert not np.array_equal(trained, before)
    assert weights.matrix("read.w", hidden).shape == (2, hidden)
