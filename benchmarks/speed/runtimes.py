"""The runtimes of the local embedder in turns: processor time, share of the peak, vectors, nDCG@10.

The reference is onnxruntime in fp32; the other one is OpenVINO in bf16, if the processor multiplies
bf16, chosen or not. A core's peak is what the same runtime reaches in one product of matrices of
1024 by 1024. Times are processor seconds of one thread.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper, numpy_helper

from callslip.config import load as load_settings
from callslip.evals.beir import JudgedSet, read
from callslip.evals.measures import measure
from callslip.evals.tables import header, table, tell
from callslip.models.e5.runtimes.choice import AMX, AVX512, Kind, load, runtime_kind
from callslip.models.e5.runtimes.processor import processor_flags
from callslip.models.e5.tokens import Tokenizer
from callslip.models.e5.weights import Weights
from callslip.models.embedders.contract import Vectors
from callslip.models.embedders.local import WINDOW, E5Embedder

REFERENCE: Kind = "onnxruntime fp32"
PASSAGES, TURNS, SIDE, QUERIES = 40, 3, 1024, 50


def main() -> None:
    """Measure and print Markdown tables."""
    options = _options()
    settings = load_settings().settings
    models, kinds = settings.models_dir, [REFERENCE]
    if processor_flags() & {AMX, AVX512}:
        kinds.append("openvino bf16")
    tokenizer = Tokenizer(models)
    embedders = {kind: E5Embedder(models, tokenizer, kind=kind) for kind in kinds}
    print(header(settings), end="\n\n")
    peaks = {kind: _peak(kind) for kind in kinds}
    speed, quality = [], []
    for folder in options.sets:
        judged = read(folder)
        texts = [d.content for d in islice(judged.corpus(), options.passages)]
        tell(f"{judged.name}: {len(texts)} passages, {TURNS} turns")
        work = sum(map(_operations, (_tokens(tokenizer, text) for text in texts)))
        took: dict[Kind, list[float]] = {kind: [] for kind in kinds}
        vectors: dict[Kind, Vectors] = {}
        for _ in range(TURNS):
            for kind, embedder in embedders.items():
                embedder.query("warm")
                began = time.process_time()
                vectors[kind] = embedder.passages(texts)
                took[kind].append(time.process_time() - began)
        for kind in kinds:
            seconds = min(took[kind])
            cosine = (vectors[kind] * vectors[REFERENCE]).sum(1).min()
            speed.append([
                judged.name, kind, f"{len(texts) / seconds:.1f}",
                f"{min(took[REFERENCE]) / seconds:.2f}",
                f"{_query_ms(embedders[kind], judged):.1f}",
                f"{work / seconds / peaks[kind]:.2f}", f"{cosine:.6f}",
            ])  # fmt: skip
        if options.ndcg:
            quality.append([judged.name, *(_ndcg(judged, embedders[kind]) for kind in kinds)])
    for kind, peak in peaks.items():
        print(f"Peak of one core by {kind}: {peak / 1e9:.0f} GFLOP/s.")
    print(f"Callslip chooses {runtime_kind('cpu')} here.")
    head = ["set", "runtime", "passages/s", "ratio", "ms per query", "of the peak", "least cosine"]
    print(f"\n{table(head, speed)}")
    if quality:
        print(f"\nnDCG@10 of the vectors alone\n\n{table(['set', *kinds], quality)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed.runtimes", description=__doc__
    )
    parser.add_argument("sets", type=Path, nargs="+", help="folders of judged sets in BEIR form")
    parser.add_argument("--passages", type=int, default=PASSAGES, help="of each set, for the times")
    parser.add_argument("--ndcg", action="store_true", help="also embed and search the whole sets")
    return parser.parse_args()


def _tokens(tokenizer: Tokenizer, text: str) -> int:
    return min(len(tokenizer.ids(f"passage: {text}")), WINDOW) + 2


def _operations(tokens: int) -> float:
    """Floating-point operations of the encoder for one text: two per product and sum."""
    shape = Weights.of_wheel().shape
    matrices = 4 * shape.hidden**2 + 2 * shape.hidden * shape.feed_forward
    return 2.0 * shape.layers * tokens * (matrices + 2 * tokens * shape.hidden)


def _peak(kind: Kind) -> float:
    """Floating-point operations per processor second of a product of two matrices, at best."""
    values = np.random.default_rng(1).standard_normal((SIDE, SIDE), np.float32)
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [info("x", TensorProto.FLOAT, [SIDE, SIDE])],
        [info("y", TensorProto.FLOAT, [SIDE, SIDE])],
        [numpy_helper.from_array(values, "w")],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9
    ).SerializeToString()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "product.onnx"
        file.write_bytes(model)
        runtime = load(kind, file, 1)
        took = []
        for _ in range(20):
            began = time.process_time()
            runtime.run("y", {"x": values})
            took.append(time.process_time() - began)
    return 2.0 * SIDE**3 / min(took)


def _query_ms(embedder: E5Embedder, judged: JudgedSet) -> float:
    queries = list(islice(judged.queries.values(), QUERIES))
    began = time.process_time()
    for query in queries:
        embedder.query(query)
    return (time.process_time() - began) / len(queries) * 1000


def _ndcg(judged: JudgedSet, embedder: E5Embedder) -> str:
    tell(f"{judged.name}: every passage, by {embedder.runtime}")
    documents = list(judged.corpus())
    passages = embedder.passages([d.content for d in documents])
    queries = np.stack([embedder.query(text) for text in judged.queries.values()])
    ids = [document.document_id for document in documents]
    run = {
        query: _best(ids, scores)
        for query, scores in zip(judged.queries, queries @ passages.T, strict=True)
    }
    return f"{measure(judged.qrels, run)['ndcg@10']:.4f}"


def _best(ids: Sequence[str], scores: npt.NDArray[np.float32]) -> dict[str, float]:
    return {ids[i]: float(scores[i]) for i in np.argsort(-scores, kind="stable")[:100]}


if __name__ == "__main__":
    main()
