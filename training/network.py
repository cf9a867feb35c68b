"""The encoder in PyTorch, with the head of the reader; the lower layers are frozen."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from callslip.models.e5.weights import Weights, unpack

FROZEN = 8
"""The lower layers that keep the encoder's weights."""

DROPPED = 0.1


class Batch(NamedTuple):
    """Padded pairs: all tensors but `unanswered`, of shape (pairs,), are (pairs, tokens)."""

    ids: Tensor
    mask: Tensor
    text: Tensor
    answer: Tensor
    unanswered: Tensor


class ReaderNetwork(nn.Module):
    """Scores each token as a part of the answer, and the first one as `not in this text`."""

    def __init__(self, weights: Weights) -> None:
        super().__init__()
        hidden = weights.shape.hidden
        self._words = torch.tensor(unpack(weights.blocks("emb.word", hidden)).astype(np.float16))
        positions = weights.vector("emb.pos").reshape(-1, hidden)
        self._positions = torch.tensor(positions + weights.vector("emb.type")[:hidden])
        self.norm = _norm(weights, "emb.ln")
        self.layers = nn.ModuleList(Layer(weights, n) for n in range(weights.shape.layers))
        self.head = nn.Linear(hidden, 2)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)
        for part in (self.norm, *self.layers[:FROZEN]):
            part.requires_grad_(False)

    @torch.no_grad()
    def lower(self, batch: Batch) -> Tensor:
        """The output of the frozen layers: shape (pairs, tokens, hidden)."""
        x = self.norm(self._words[batch.ids].float() + self._positions[: batch.ids.shape[1]])
        for layer in self.layers[:FROZEN]:
            x = layer.eval()(x, batch.mask)
        return Tensor(x)

    def upper(self, x: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
        """The scores of `not in this text` and of the tokens: (pairs,), (pairs, tokens)."""
        for layer in self.layers[FROZEN:]:
            x = layer(x, batch.mask)
        scores = self.head(x).float()
        return scores[:, 0, 0], scores[:, :, 1].masked_fill(~batch.text, -1e4)


class Layer(nn.Module):
    """One layer of the encoder."""

    def __init__(self, weights: Weights, number: int) -> None:
        super().__init__()
        at, shape = f"l{number}", weights.shape
        self._heads = shape.heads
        self.q, self.k, self.v, self.ao, self.fi = (
            _linear(weights, f"{at}.{name}", shape.hidden) for name in ("q", "k", "v", "ao", "fi")
        )
        self.fo = _linear(weights, f"{at}.fo", shape.feed_forward)
        self.aln, self.oln = _norm(weights, f"{at}.aln"), _norm(weights, f"{at}.oln")

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """Apply the layer; `mask` is true for tokens that are no padding."""
        parts = (self._by_head(part(x)) for part in (self.q, self.k, self.v))
        attended = functional.scaled_dot_product_attention(*parts, attn_mask=mask[:, None, None])
        x = self.aln(x + self._dropped(self.ao(attended.transpose(1, 2).flatten(2))))
        return Tensor(self.oln(x + self._dropped(self.fo(functional.gelu(self.fi(x))))))

    def _by_head(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (self._heads, -1)).transpose(1, 2)

    def _dropped(self, x: Tensor) -> Tensor:
        return functional.dropout(x, DROPPED, self.training)


def _linear(weights: Weights, name: str, width: int) -> nn.Linear:
    matrix = torch.tensor(weights.matrix(f"{name}.w", width))
    layer = nn.Linear(matrix.shape[1], matrix.shape[0])
    layer.weight.data, layer.bias.data = matrix, torch.tensor(weights.vector(f"{name}.b"))
    return layer


def _norm(weights: Weights, name: str) -> nn.LayerNorm:
    layer = nn.LayerNorm(weights.shape.hidden, eps=weights.shape.epsilon)
    layer.weight.data = torch.tensor(weights.vector(f"{name}.w"))
    layer.bias.data = torch.tensor(weights.vector(f"{name}.b"))
    return layer


def loss(absent: Tensor, tokens: Tensor, batch: Batch) -> Tensor:
    """The negative log probability of the answer's tokens, or of `not in this text`.

    The softmax is over both. A pair without an answer weighs .6, as there are more of them.
    """
    every = torch.logsumexp(torch.cat([absent[:, None], tokens], 1), 1)
    answer = torch.logsumexp(tokens.masked_fill(~batch.answer, -1e4), 1)
    right = torch.where(batch.unanswered, absent, answer)
    weight = torch.where(batch.unanswered, 0.6, 1.0)
    return ((every - right) * weight).mean()


def save(network: ReaderNetwork, file: Path) -> None:
    """Write the trained tensors as `callslip.models.reader.weights` reads them."""
    tensors: dict[str, np.ndarray] = {}
    for number, layer in enumerate(network.layers):
        if number >= FROZEN:
            for name in ("q", "k", "v", "ao", "fi", "fo"):
                _store(tensors, f"l{number}.{name}", getattr(layer, name))
            for name in ("aln", "oln"):
                norm = getattr(layer, name)
                tensors[f"l{number}.{name}.w"] = norm.weight.detach().numpy().astype(np.float16)
                tensors[f"l{number}.{name}.b"] = norm.bias.detach().numpy().astype(np.float16)
    _store(tensors, "read", network.head)
    np.savez_compressed(file, **tensors)


def _store(tensors: dict[str, np.ndarray], name: str, layer: nn.Linear) -> None:
    matrix = layer.weight.detach().numpy()
    scales = np.maximum(np.abs(matrix).max(1) / 127, 1e-7).astype(np.float16)
    tensors[f"{name}.w"] = np.rint(matrix / scales[:, None].astype(np.float32)).astype(np.int8)
    tensors[f"{name}.w/scale"] = scales
    tensors[f"{name}.b"] = layer.bias.detach().numpy().astype(np.float16)
