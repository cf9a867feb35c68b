"""Trace ids, and the random numbers of a search, whose seed is the trace id."""

import hashlib
import re
import uuid

import numpy as np


def new_id() -> str:
    """Return a unique trace id of 32 hexadecimal digits."""
    return uuid.uuid4().hex


def is_id(text: str) -> bool:
    """Return whether a text has the form of a trace id."""
    return re.fullmatch("[0-9a-f]{32}", text) is not None


def generator(trace_id: str) -> np.random.Generator:
    """Return a random generator that repeats the same numbers if the trace is replayed."""
    seed = hashlib.blake2b(trace_id.encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(seed, "big"))
