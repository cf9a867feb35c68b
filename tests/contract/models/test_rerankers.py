"""The contract of rerankers, held by late interaction, a cross-encoder in a file and a server."""

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from rerank_parts import DictCache, RerankServer, overlap, write_cross_encoder

from callslip.config.sections.ranking import RerankSettings
from callslip.config.settings import Settings
from callslip.errors import RerankerDown
from callslip.models.registry import make_embedder, make_reranker
from callslip.models.rerankers.contract import Reranker

PASSAGES = [
    "Volcanoes erupt when magma rises through cracks in the crust.",
    "출산장려금은 아이를 낳은 부모에게 시에서 지급한다.",
    "The city pays a grant to parents after the birth of a child.",
    "The opening hours of the harbour office are on the door.",
]
AMPLE = 120.0


@pytest.fixture(scope="module")
def server() -> Iterator[RerankServer]:
    with RerankServer() as made:
        yield made


@pytest.fixture(scope="module", params=["maxsim", "onnx", "onnx of two logits", "api", "tei"])
def reranker(
    request: pytest.FixtureRequest, models_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Reranker:
    folder = tmp_path_factory.mktemp("reranker")
    (folder / "models").symlink_to(models_dir)
    match request.param:
        case "maxsim":
            chosen = RerankSettings(provider="maxsim")
        case "api" | "tei":
            server: RerankServer = request.getfixturevalue("server")
            protocol = {"api": "cohere", "tei": "tei"}[request.param]
            chosen = RerankSettings.model_validate(
                {"provider": "api", "url": server.url(protocol), "protocol": protocol}
            )
        case _:
            files = write_cross_encoder(folder, logits=2 if "two" in request.param else 1)
            chosen = RerankSettings(
                provider="onnx", onnx_file=files[0], tokenizer_file=files[1], max_tokens=64
            )
    settings = Settings(data_dir=folder, rerank=chosen)
    made = make_reranker(settings, make_embedder(settings), DictCache())
    assert made is not None
    return made


def test_what_answers_the_question_is_above_what_does_not(reranker: Reranker) -> None:
    scores = reranker.scores("grant for parents of a child", PASSAGES, AMPLE)
    assert len(scores) == len(PASSAGES)
    assert int(np.argmax(scores)) == 2


def test_korean_is_read(reranker: Reranker) -> None:
    scores = reranker.scores("아이를 낳은 부모", PASSAGES, AMPLE)
    assert int(np.argmax(scores)) == 1


def test_scores_stand_in_the_order_of_the_passages(reranker: Reranker) -> None:
    scores = reranker.scores("grant", PASSAGES, AMPLE)
    assert reranker.scores("grant", PASSAGES[::-1], AMPLE)[::-1] == pytest.approx(scores, abs=1e-5)


def test_the_same_call_gives_the_same_scores(reranker: Reranker) -> None:
    first = reranker.scores("grant", PASSAGES, AMPLE)
    assert reranker.scores("grant", PASSAGES, AMPLE) == pytest.approx(first, abs=1e-6)


def test_equal_passages_have_equal_scores(reranker: Reranker) -> None:
    first, _, again = reranker.scores("grant", [PASSAGES[2], PASSAGES[0], PASSAGES[2]], AMPLE)
    assert first == pytest.approx(again, abs=1e-6)


def test_no_passages_give_no_scores(reranker: Reranker) -> None:
    assert reranker.scores("grant", [], AMPLE) == []


def test_blank_passages_have_the_lowest_score(reranker: Reranker) -> None:
    scores = reranker.scores("grant", ["", *PASSAGES, " \n"], AMPLE)
    assert scores[0] == scores[-1] == min(scores)
    assert scores[1:-1] == pytest.approx(reranker.scores("grant", PASSAGES, AMPLE), abs=1e-5)
    assert reranker.scores("grant", ["", "\t"], AMPLE) == [0.0, 0.0]


def test_of_a_very_long_passage_the_beginning_is_read(reranker: Reranker) -> None:
    long = PASSAGES[2] + " stack" * 200_000
    scores = reranker.scores("grant for parents", [long, PASSAGES[0]], AMPLE)
    assert scores[0] > scores[1]


def test_a_question_as_long_as_is_allowed_is_read(reranker: Reranker) -> None:
    scores = reranker.scores("grant for parents " * 222, PASSAGES, AMPLE)
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(
    "hostile",
    [
        "\0",
        "a \ud800 b",
        "\U0001f600" * 50,
        "\u200b",
        "\u202eabc",
        '"],"top_n":0,"x":["',
        "</s><s>[SEP][CLS]",
        "'; DROP TABLE chunks; --",
    ],
)
def test_hostile_text_is_read_as_text(reranker: Reranker, hostile: str) -> None:
    scores = reranker.scores("grant", [hostile, PASSAGES[2], hostile], AMPLE)
    assert np.isfinite(scores).all()
    assert scores[0] == pytest.approx(scores[2], abs=1e-6)
    assert np.isfinite(reranker.scores(hostile, PASSAGES, AMPLE)).all()


@pytest.mark.long
def test_many_passages_are_read(reranker: Reranker) -> None:
    passages = [f"papers {n}" for n in range(199)] + ["a grant for parents"]
    scores = reranker.scores("grant for parents", passages, AMPLE)
    assert int(np.argmax(scores)) == 199


def test_it_gives_up_in_time_and_can_be_asked_again(reranker: Reranker) -> None:
    passages = [f"papers {n} of this test " * 40 for n in range(100)]
    reranker.scores("grant", PASSAGES, AMPLE)  # loads
    start = time.monotonic()
    with pytest.raises(RerankerDown, match=r"in 0\.001 s"):
        reranker.scores("grant", passages, 0.001)
    assert time.monotonic() - start < 3
    assert len(reranker.scores("grant", PASSAGES, AMPLE)) == len(PASSAGES)


def test_its_name_says_kind_and_model(reranker: Reranker) -> None:
    kind, model = reranker.name.split("/", 1)
    assert kind in ("maxsim", "onnx", "api")
    assert model


def test_the_server_of_these_tests_counts_words_in_common() -> None:
    assert overlap("grant for parents", PASSAGES[2]) > overlap("grant for parents", PASSAGES[0])
