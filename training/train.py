"""Trains the reader and writes its file: `python -m training.train PAIRS OUT.npz`.

Two passes over the pairs in batches of pairs of like length, with AdamW and a learning rate that
rises for a tenth of the steps and then falls to 0. In the second pass the output of the frozen
layers comes from memory.
"""

import argparse
import pickle
import random
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
import torch
from torch import Tensor

from callslip.models.e5.weights import Weights
from training.network import Batch, ReaderNetwork, loss, save
from training.pairs import Pair

SEED = 3
PASSES, TOKENS = 2, 4096
RATE, HEAD_RATE = 2e-4, 1e-3
"""The highest learning rates of the layers and of the head."""


def batches(pairs: Sequence[Pair], dice: random.Random) -> list[list[Pair]]:
    """Pairs of like length, at most TOKENS tokens with their padding."""
    made: list[list[Pair]] = [[]]
    for pair in sorted(pairs, key=lambda pair: len(pair.ids) + 20 * dice.random()):
        longest = max(len(pair.ids), *(len(other.ids) for other in made[-1]), 0)
        if made[-1] and (len(made[-1]) + 1) * longest > TOKENS:
            made.append([])
        made[-1].append(pair)
    return made


def padded(pairs: Sequence[Pair]) -> Batch:
    """The tensors of a batch."""
    shape = len(pairs), max(len(pair.ids) for pair in pairs)
    ids = torch.ones(shape, dtype=torch.long)
    mask, text, answer = (torch.zeros(shape, dtype=torch.bool) for _ in range(3))
    for row, pair in enumerate(pairs):
        ids[row, : len(pair.ids)] = torch.tensor(pair.ids)
        mask[row, : len(pair.ids)] = True
        text[row, pair.text[0] : pair.text[1]] = True
        answer[row, pair.answer] = True
    return Batch(ids, mask, text, answer, ~answer.any(1))


def train(network: ReaderNetwork, pairs: Sequence[Pair]) -> Iterator[tuple[int, int, float]]:
    """Train in place; yield the step, the number of steps and the loss of each batch."""
    dice = random.Random(SEED)  # noqa: S311
    made, cache = batches(pairs, dice), dict[int, Tensor]()
    steps = PASSES * len(made)
    head = list(network.head.parameters())
    others = [p for p in network.parameters() if p.requires_grad and all(p is not h for h in head)]
    groups = [{"params": others, "lr": RATE}, {"params": head, "lr": HEAD_RATE}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(10 * step / steps, (steps - step) / steps)
    )
    for number in range(PASSES):
        for position, at in enumerate(dice.sample(range(len(made)), len(made))):
            batch = padded(made[at])
            network.train()
            with torch.autocast("cpu", torch.bfloat16):
                lower = cache.pop(at).float() if at in cache else network.lower(batch)
                if number < PASSES - 1:
                    cache[at] = lower.to(torch.bfloat16)
                value = loss(*network.upper(lower, batch), batch)
            optimizer.zero_grad(set_to_none=True)
            value.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_([*others, *head], 1.0)
            optimizer.step()
            schedule.step()
            yield number * len(made) + position + 1, steps, value.item()


@torch.no_grad()
def accuracy(network: ReaderNetwork, pairs: Sequence[Pair]) -> dict[str, float]:
    """By language and kind: the share of texts that are judged rightly to answer or not.

    `token` is the share of answered texts whose best token is a part of the answer.
    """
    network.eval()
    right = defaultdict[str, list[bool]](list)
    for pair in pairs:
        batch = padded([pair])
        with torch.autocast("cpu", torch.bfloat16):
            absent, tokens = network.upper(network.lower(batch), batch)
        answered = bool(torch.logsumexp(tokens, 1) > absent)
        right[f"{pair.lang} {pair.kind}"].append(answered == bool(pair.answer))
        if pair.answer:
            right[f"{pair.lang} token"].append(int(tokens.argmax()) in pair.answer)
    return {kind: round(fmean(flags), 3) for kind, flags in sorted(right.items())}


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, print the accuracy on questions that were left out, and write the file."""
    parser = argparse.ArgumentParser(prog="python -m training.train", description=__doc__)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args(arguments)
    torch.manual_seed(SEED)
    pairs: list[Pair] = pickle.loads(options.pairs.read_bytes())  # noqa: S301
    network = ReaderNetwork(Weights.of_wheel())
    values: list[float] = []
    for step, steps, value in train(network, [p for p in pairs if p.part == "train"]):
        values.append(value)
        if step % 50 == 0:
            print(f"{step:,} of {steps:,}: loss {np.mean(values[-50:]):.3f}", flush=True)
    print(accuracy(network, [p for p in pairs if p.part == "dev"]))
    save(network, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
