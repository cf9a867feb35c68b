"""A cross-encoder from an ONNX file: reads query and passage together (Nogueira & Cho 2019)."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnxruntime
from tokenizers import Encoding, Tokenizer

from callslip.config.sections.ranking import RerankSettings
from callslip.errors import RerankerDown, SettingsError
from callslip.models.batches import by_length
from callslip.models.e5.tokens import well_formed
from callslip.models.rerankers.contract import Deadline, blanks_last
from callslip.per_process import PerProcess

BATCH_TOKENS = 512
"""The most tokens of a padded batch, as for the embedder: on a CPU larger batches gain nothing."""

CHARS_PER_TOKEN = 16
"""More characters than a token has on average in any language.

Text after `rerank.max_tokens` times this number of characters is not tokenized.
"""

_IDS, _MASK, _TYPES = "input_ids", "attention_mask", "token_type_ids"
_INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_HINT = (
    "rerank.onnx_file takes input_ids, attention_mask and, if it wants, token_type_ids, and gives"
    " one or two logits a pair; rerank.tokenizer_file is the tokenizer.json beside it."
)


class CrossEncoder:
    """A `Reranker` that loads when first used, once per process. Threads may share an instance.

    A single logit becomes a score by the sigmoid; of two logits, the second probability of the
    softmax is the score. The deadline stops a run of the network, which is late by at most one node
    of the graph.
    """

    def __init__(self, settings: RerankSettings, *, threads: int = 1) -> None:
        """`threads` is the number of threads of one inference.

        Raises SettingsError if a file is missing.
        """
        model, tokenizer = settings.onnx_file, settings.tokenizer_file
        if model is None or tokenizer is None:
            raise SettingsError("rerank.provider onnx needs rerank.onnx_file and .tokenizer_file")
        for file in (model, tokenizer):
            if not file.is_file():
                raise SettingsError(f"the reranker's file is missing: {file}", hint=_HINT)
        self.name = f"onnx/{model.stem}"
        self._most_chars = settings.max_tokens * CHARS_PER_TOKEN
        self._loaded = PerProcess(lambda: _Loaded(model, tokenizer, settings.max_tokens, threads))

    def scores(self, query: str, passages: Sequence[str], deadline_seconds: float) -> list[float]:
        """Return scores according to the contract: 0 to 1.

        Raises SettingsError if the files are not those of a cross-encoder.
        """
        deadline = Deadline(deadline_seconds)
        question = self._fit(query)
        return blanks_last(
            passages,
            lambda readable: self._loaded.get().scores(
                question, [self._fit(p) for p in readable], deadline
            ),
        )

    def _fit(self, text: str) -> str:
        return well_formed(text[: self._most_chars])


class _Loaded:
    def __init__(self, model: Path, tokenizer: Path, max_tokens: int, threads: int) -> None:
        try:
            self._tokenizer: Tokenizer = Tokenizer.from_file(str(tokenizer))
        except Exception as error:  # the library raises no narrower class
            raise SettingsError(f"{tokenizer} is no tokenizer.json", hint=_HINT) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens, strategy="longest_first")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # Threads that spin while they wait would take the cores from other processes.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._session = onnxruntime.InferenceSession(
                str(model), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's errors have no narrower common class
            raise SettingsError(f"{model} cannot be loaded by onnxruntime", hint=_HINT) from error
        self._inputs = {i.name: _INTEGERS.get(i.type) for i in self._session.get_inputs()}
        if not {_IDS, _MASK} <= set(self._inputs) <= {_IDS, _MASK, _TYPES} or None in (
            self._inputs.values()
        ):
            raise SettingsError(f"{model} takes other inputs than a cross-encoder", hint=_HINT)
        self._output = self._session.get_outputs()[0].name

    def scores(self, query: str, passages: Sequence[str], deadline: Deadline) -> list[float]:
        """Return a score of 0 to 1 for each passage."""
        pairs = []
        for passage in passages:
            deadline.check(0, len(passages))
            pairs.append(self._tokenizer.encode(query, passage))
        scores = np.empty(len(pairs))
        done = 0
        for batch in by_length([len(pair.ids) for pair in pairs], BATCH_TOKENS):
            deadline.check(done, len(pairs))
            with _ended(deadline, done, len(pairs)) as run:
                feed = self._feed([pairs[i] for i in batch])
                (logits,) = self._session.run([self._output], feed, run)
            scores[batch] = _probabilities(np.asarray(logits, np.float64), len(batch))
            done += len(batch)
        if not np.isfinite(scores).all():
            raise RerankerDown("the cross-encoder gave a score that is not a number")
        all_scores: list[float] = scores.tolist()
        return all_scores

    def _feed(self, pairs: Sequence[Encoding]) -> dict[str, npt.NDArray[np.integer]]:
        shape = len(pairs), max(len(pair.ids) for pair in pairs)
        feed = {name: np.zeros(shape, dtype) for name, dtype in self._inputs.items()}
        for i, pair in enumerate(pairs):  # the mask excludes the padding, so its ids do not matter
            rows = {_IDS: pair.ids, _MASK: pair.attention_mask, _TYPES: pair.type_ids}
            for name, array in feed.items():
                array[i, : len(pair.ids)] = rows[name]
        return feed


@contextmanager
def _ended(deadline: Deadline, done: int, count: int) -> Iterator[onnxruntime.RunOptions]:
    """Provide the options of a run that ends at the deadline, with RerankerDown in that case."""
    options = onnxruntime.RunOptions()
    timer = threading.Timer(deadline.left, lambda: setattr(options, "terminate", True))
    timer.start()
    try:
        yield options
    except Exception as error:  # onnxruntime's errors have no narrower common class
        deadline.check(done, count)
        raise SettingsError("the cross-encoder failed on its input", hint=_HINT) from error
    finally:
        timer.cancel()


def _probabilities(logits: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.float64]:
    """Return probabilities of shape (count,).

    The logits have shape (count,), (count, 1) or (count, 2).
    """
    if logits.shape == (count, 2):
        logits = logits[:, 1] - logits[:, 0]  # softmax of two = sigmoid of the difference
    if logits.size != count:
        raise SettingsError(f"the cross-encoder gives logits of shape {logits.shape}", hint=_HINT)
    probabilities: npt.NDArray[np.float64] = 0.5 * (1 + np.tanh(logits.reshape(count) / 2))
    return probabilities
