"""Reads passages for the answer to a question: the log odds of each sentence to have the answer.

The reader is the encoder of multilingual-e5-small with upper layers of its own. Question and
passage are one input, `query: … </s> passage: heading sentence sentence …`. The network scores each
token as a part of the answer, and the start token as `not in this text`; a softmax over these
scores was trained (docs/reader.md). The score of a sentence is the log of the sum of its tokens'
exponentials, less the score of the start token.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from callslip.models.e5.network import Network
from callslip.models.e5.prepare import build_once
from callslip.models.e5.runtimes.choice import Device, Kind, runtime_kind
from callslip.models.e5.tensors import SCORES
from callslip.models.e5.tokens import Tokenizer
from callslip.models.e5.weights import Weights
from callslip.models.reader.contract import LogOdds, Passage
from callslip.models.reader.weights import ReaderWeights, digest
from callslip.models.text.normalization import normalized
from callslip.per_process import PerProcess

WINDOW = 318
"""The maximum number of tokens of an input without the start and the end token."""

QUESTION, HEADING = 56, 24
"""The maximum numbers of tokens of the question and of the heading, with their prefixes."""

BATCH_TOKENS = 1024
"""The maximum number of tokens of a padded batch."""

BUILD = 1
"""Incremented when `onnx_graph` changes its output for the same weights."""


class Reader:
    """Loads when first used, once per process. Threads may share an instance."""

    def __init__(
        self,
        models_dir: Path,
        tokenizer: Tokenizer,
        *,
        threads: int = 1,
        at_once: int = 1,
        device: Device = "cpu",
        kind: Kind | None = None,
    ) -> None:
        """`models_dir` is the folder of built files.

        At most `at_once` inferences of `threads` threads each run at once.

        `kind` is the runtime, by default the fastest that this machine has for `device`.
        """
        self._tokenizer = tokenizer
        runtime = kind or runtime_kind(device)
        self._network = PerProcess(lambda: Network(_prepare(models_dir), threads, runtime, at_once))

    def read(self, question: str, passages: Sequence[Passage]) -> list[LogOdds]:
        """Return the log odds of each sentence of each passage, in the order of the input.

        A sentence without a token has -inf. Long passages are read in windows of whole sentences;
        of a sentence that is longer than a window only the beginning is read.
        """
        windows = [
            (number, window)
            for number, passage in enumerate(passages)
            for window in self._windows(question, passage)
        ]
        results = [np.full(len(p.sentences), -np.inf, np.float32) for p in passages]
        network = self._network.get()
        rows = [window.row for _, window in windows]
        for batch in network.batches(rows, BATCH_TOKENS):
            outputs = network.run(SCORES, [rows[i] for i in batch])
            for scores, i in zip(outputs, batch, strict=True):
                number, window = windows[i]
                for sentence, start, end in window.sentences:
                    tokens = scores[start:end, 1]
                    results[number][sentence] = np.logaddexp.reduce(tokens) - scores[0, 0]
        return results

    def _windows(self, question: str, passage: Passage) -> list["_Window"]:
        prefix = [
            *self._ids(f"query: {question}")[:QUESTION],
            self._network.get().separator,
            *self._ids(f"passage: {passage.heading}".rstrip())[:HEADING],
        ]
        windows: list[_Window] = []
        for number, sentence in enumerate(passage.sentences):
            ids = self._ids(sentence)[: WINDOW - len(prefix)]
            if not ids:
                continue
            if not windows or len(windows[-1].row) + len(ids) > WINDOW:
                windows.append(_Window([*prefix], []))
            windows[-1].add(number, ids)
        return windows

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer.ids(normalized("NFC", text))


@dataclass(frozen=True)
class _Window:
    """An input without the start token, and for each sentence the first and last token + 1."""

    row: list[int]
    sentences: list[tuple[int, int, int]]

    def add(self, number: int, ids: Sequence[int]) -> None:
        start = len(self.row) + 1  # behind the start token
        self.row.extend(ids)
        self.sentences.append((number, start, start + len(ids)))


def _prepare(models_dir: Path) -> Path:
    file = models_dir / f"reader-{digest()[:8]}-{BUILD}.onnx"
    return build_once(file, _graph)


def _graph() -> bytes:
    from callslip.models.e5 import onnx_graph  # imports onnx, which only a build needs

    return onnx_graph.serialize_reader(ReaderWeights(Weights.of_wheel()))
