"""The encoder of multilingual-e5-small as an ONNX graph in fp32.

A BERT encoder (Devlin et al. 2019) with mean pooling over the tokens of the mask and vectors of
length 1 (Wang et al. 2024, "Multilingual E5 Text Embeddings"), built from onnxruntime's fused
operators. The word embeddings are not part of the graph: unpacked they have 384 MB, and a batch
needs a few rows. The graph is in fp32, because int8 makes a vector depend on the rest of its batch.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from callslip.models.e5.tensors import EMBEDDINGS, MASK, SCORES, TOKENS, VECTORS
from callslip.models.e5.weights import Floats, Shape

HEAD = "read"
"""The name of the matrix and of the bias that map the token vectors of a reader to SCORES."""

_FUSED = "com.microsoft"


class EncoderWeights(Protocol):
    """The tensors of an encoder by name, as `models.e5.weights.Weights` has them."""

    @property
    def shape(self) -> Shape:
        """The dimensions of the network."""

    def vector(self, name: str) -> Floats:
        """Return a vector: shape (count,)."""

    def matrix(self, name: str, width: int) -> Floats:
        """Return a matrix: shape (rows, width)."""


def serialize(weights: EncoderWeights) -> bytes:
    """Return the graph with VECTORS and TOKENS as the bytes of an ONNX file, about 85 MB."""
    graph = _Graph(weights)
    hidden = graph.encoder()
    graph.mean_pool(hidden)
    graph.give(hidden, TOKENS)
    return graph.serialize({VECTORS: ["batch"], TOKENS: ["batch", "tokens"]}, weights.shape.hidden)


def serialize_reader(weights: EncoderWeights) -> bytes:
    """Return the graph with SCORES as the bytes of an ONNX file, about 85 MB."""
    graph = _Graph(weights)
    graph.give(graph.linear(graph.encoder(), HEAD, weights.shape.hidden), SCORES)
    return graph.serialize({SCORES: ["batch", "tokens"]}, 2)


class _Graph:
    """Collects nodes and their constants. Methods that add nodes return the name of the output."""

    def __init__(self, weights: EncoderWeights) -> None:
        self._weights = weights
        self._shape = weights.shape
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}

    def encoder(self) -> str:
        hidden = self.layer_norm(EMBEDDINGS, "emb.ln")
        for layer in range(self._shape.layers):
            hidden = self.encoder_layer(hidden, f"l{layer}")
        return hidden

    def layer_norm(self, x: str, name: str) -> str:
        scale, bias = self._vector(f"{name}.w"), self._vector(f"{name}.b")
        epsilon = self._shape.epsilon
        return self._node("LayerNormalization", [x, scale, bias], name, epsilon=epsilon, axis=-1)

    def encoder_layer(self, x: str, at: str) -> str:
        hidden, wide = self._shape.hidden, self._shape.feed_forward
        attended = self.linear(self._attention(x, at), f"{at}.ao", hidden)
        x = self._add_and_norm(x, attended, f"{at}.aln")
        inner = self._matmul(x, f"{at}.fi", hidden)
        inner = self._fused("BiasGelu", [inner, self._vector(f"{at}.fi.b")], f"{at}.gelu")
        return self._add_and_norm(x, self.linear(inner, f"{at}.fo", wide), f"{at}.oln")

    def mean_pool(self, x: str) -> None:
        tokens, width = (
            self._constant("axis1", np.array([1])),
            self._constant("axis2", np.array([2])),
        )
        mask = self._node("Cast", [MASK], "mask.float", to=TensorProto.FLOAT)
        masked = self._node(
            "Mul", [x, self._node("Unsqueeze", [mask, width], "mask.wide")], "masked"
        )
        total = self._node("ReduceSum", [masked, tokens], "total", keepdims=0)
        count = self._node("ReduceSum", [mask, tokens], "count", keepdims=1)
        mean = self._node("Div", [total, count], "mean")
        self._node("LpNormalization", [mean], VECTORS, axis=1, p=2)

    def give(self, x: str, output: str) -> None:
        self._node("Identity", [x], output)

    def serialize(self, outputs: Mapping[str, Sequence[str]], width: int) -> bytes:
        """Return the file; `outputs` has the names of all dimensions but the last, `width`."""
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self._nodes,
            "multilingual-e5-small",
            [
                value(EMBEDDINGS, TensorProto.FLOAT, ["batch", "tokens", self._shape.hidden]),
                value(MASK, TensorProto.INT32, ["batch", "tokens"]),
            ],
            [value(name, TensorProto.FLOAT, [*of, width]) for name, of in outputs.items()],
            list(self._constants.values()),
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(_FUSED, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        serialized: bytes = model.SerializeToString()
        return serialized

    def _attention(self, x: str, at: str) -> str:
        hidden = self._shape.hidden
        matrices = [self._weights.matrix(f"{at}.{part}.w", hidden).T for part in "qkv"]
        biases = [self._weights.vector(f"{at}.{part}.b") for part in "qkv"]
        weight = self._constant(f"{at}.qkv.w", np.concatenate(matrices, axis=1))
        bias = self._constant(f"{at}.qkv.b", np.concatenate(biases))
        heads = self._shape.heads
        return self._fused("Attention", [x, weight, bias, MASK], f"{at}.attention", num_heads=heads)

    def _add_and_norm(self, x: str, y: str, name: str) -> str:
        scale, bias = self._vector(f"{name}.w"), self._vector(f"{name}.b")
        epsilon = self._shape.epsilon
        return self._fused("SkipLayerNormalization", [x, y, scale, bias], name, epsilon=epsilon)

    def linear(self, x: str, name: str, width: int) -> str:
        product = self._matmul(x, name, width)
        return self._node("Add", [product, self._vector(f"{name}.b")], name)

    def _matmul(self, x: str, name: str, width: int) -> str:
        weight = self._constant(f"{name}.w", self._weights.matrix(f"{name}.w", width).T)
        return self._node("MatMul", [x, weight], f"{name}.product")

    def _vector(self, name: str) -> str:
        return self._constant(name, self._weights.vector(name))

    def _constant(self, name: str, array: npt.NDArray[np.generic]) -> str:
        self._constants[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def _fused(self, operator: str, inputs: list[str], output: str, **settings: Any) -> str:
        return self._node(operator, inputs, output, domain=_FUSED, **settings)

    def _node(self, operator: str, inputs: list[str], output: str, **settings: Any) -> str:
        self._nodes.append(helper.make_node(operator, inputs, [output], **settings))
        return output
