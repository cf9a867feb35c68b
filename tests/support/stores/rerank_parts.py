"""A cross-encoder small enough to be built by a test, a rerank server, a cache in memory."""

import json
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from callslip.models.embedders.contract import Vectors

_WORD = re.compile(r"\w+")


class DictCache:
    """A `TokenCache` that keeps everything."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Vectors] = {}

    def get(self, model: str, texts: Sequence[str]) -> dict[str, Vectors]:
        return {t: self.kept[model, t] for t in texts if (model, t) in self.kept}

    def put(self, model: str, vectors: Mapping[str, Vectors]) -> None:
        self.kept |= {(model, text): matrix for text, matrix in vectors.items()}


def overlap(query: str, passage: str) -> float:
    """The share of the query's words that the passage has."""
    words, held = set(_WORD.findall(query)), set(_WORD.findall(passage))
    return len(words & held) / len(words) if words else 0.0


class RerankServer(ThreadingHTTPServer):
    """Speaks Cohere's protocol at /rerank and text-embeddings-inference's at /tei, on loopback.

    `fault` may answer instead: it gets the handler and the results that would be sent.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[tuple[Mapping[str, str], dict[str, Any]]] = []
        self.fault: Callable[[_Handler, Any], None] | None = None
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))

    def __enter__(self) -> "RerankServer":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def url(self, protocol: str = "cohere") -> str:
        return f"http://127.0.0.1:{self.server_port}/{'tei' if protocol == 'tei' else 'rerank'}"

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that went away."""


class _Handler(BaseHTTPRequestHandler):
    server: RerankServer

    def do_POST(self) -> None:
        requests = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append((dict(self.headers), requests))
        tei = self.path == "/tei"
        passages, key = (
            requests["texts" if tei else "documents"],
            "score" if tei else "relevance_score",
        )
        if not all(passages) or (tei and len(passages) > 32):
            return self.say(422, {"error": "refused"})
        scores = [overlap(requests["query"], passage) for passage in passages]
        best_first = sorted(range(len(scores)), key=lambda i: -scores[i])
        results = [{"index": i, key: scores[i]} for i in best_first]
        time.sleep(0.002)
        if self.server.fault is not None:
            return self.server.fault(self, results)
        return self.say(200, results if tei else {"id": "1", "results": results})

    def say(self, status: int, body: Any) -> None:
        answer = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def write_cross_encoder(
    folder: Path,
    *,
    logits: int = 1,
    bias: float = 0.0,
    inputs: Sequence[str] = ("input_ids", "attention_mask", "token_type_ids"),
    detour: int = 0,
) -> tuple[Path, Path]:
    """Model and tokenizer of a cross-encoder whose logit grows with the words of the question that
    the passage has. Token types tell the two apart. `detour` products of matrices change nothing
    and take time.
    """
    tokenizer = Tokenizer(models.WordLevel(_vocabulary(), unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 1), ("[SEP]", 2)],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    graph = _graph(logits, bias, inputs, detour)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=9), folder / "overlap.onnx")
    return folder / "overlap.onnx", folder / "tokenizer.json"


def _vocabulary() -> dict[str, int]:
    words = (
        "grant for parents of a child the city pays to after birth volcanoes erupt when magma"
        " 아이를 낳은 부모 부모에게 시에서 지급한다 stack shelf opening hours harbour office door"
    )
    return {w: i for i, w in enumerate(["[PAD]", "[CLS]", "[SEP]", "[UNK]", *words.split()])}


def _graph(logits: int, bias: float, inputs: Sequence[str], detour: int) -> onnx.GraphProto:
    """Words as one-hot rows; the counts of both sides, clipped at 1, multiplied and summed up."""
    size = len(_vocabulary())
    one_hot = np.eye(size, dtype=np.float32)
    one_hot[:4] = 0  # special and unknown tokens are no words
    sign = np.array([[-4.0, 4.0]] if logits == 2 else [[8.0]], np.float32)
    constants = {
        "words": one_hot,
        "one": np.array(1, np.float32),
        "zero": np.array(0, np.float32),
        "axis1": np.array([1]),
        "axis2": np.array([2]),
        "sign": sign,
        "bias": np.full(logits, bias, np.float32),
        "wide": np.zeros((1, 1000), np.float32),
        "square": np.zeros((1000, 1000), np.float32),
    }

    def node(operator: str, given: list[str], made: str, **settings: Any) -> onnx.NodeProto:
        return helper.make_node(operator, given, [made], **settings)

    nodes = [
        node("Gather", ["words", "input_ids"], "hot"),
        node("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT),
        node("Cast", ["token_type_ids"], "type", to=TensorProto.FLOAT),
        node("Sub", ["mask", "type"], "first"),
        *(
            made
            for side, weights in (("asked", "first"), ("read", "type"))
            for made in (
                node("Unsqueeze", [weights, "axis2"], f"{side}.wide"),
                node("Mul", ["hot", f"{side}.wide"], f"{side}.hot"),
                node("ReduceSum", [f"{side}.hot", "axis1"], f"{side}.count", keepdims=0),
                node("Clip", [f"{side}.count", "zero", "one"], side),
            )
        ),
        node("Mul", ["asked", "read"], "both"),
        node("ReduceSum", ["both", "axis1"], "common", keepdims=1),
        node("ReduceSum", ["asked", "axis1"], "asked.sum", keepdims=1),
        node("Max", ["asked.sum", "one"], "asked.words"),
        node("Div", ["common", "asked.words"], "share"),
        node("MatMul", ["share", "wide"], "detour0"),
        *(node("MatMul", [f"detour{n}", "square"], f"detour{n + 1}") for n in range(detour)),
        node("ReduceSum", [f"detour{detour}", "axis1"], "nothing", keepdims=1),
        node("Add", ["share", "nothing"], "same"),
        node("MatMul", ["same", "sign"], "signed"),
        node("Add", ["signed", "bias"], "logits"),
    ]
    value = helper.make_tensor_value_info
    return helper.make_graph(
        nodes,
        "overlap",
        [value(name, TensorProto.INT64, ["batch", "tokens"]) for name in inputs],
        [value("logits", TensorProto.FLOAT, ["batch", logits])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
