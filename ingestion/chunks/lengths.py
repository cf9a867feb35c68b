"""Completes and checks the lengths of chunks that a request names, in a preview and in a cut."""

from callslip.config.settings import ChunkingSettings
from callslip.errors import InvalidRequest

TARGET = 0.9
"""The target length as a share of the longest chunk, as in the settings' defaults."""

SHORTEST = 32
"""The least target length, in tokens."""


def lengths(
    present: ChunkingSettings,
    reads: int,
    *,
    target_tokens: int | None = None,
    max_tokens: int | None = None,
    overlap_tokens: int | None = None,
) -> ChunkingSettings:
    """Return the named lengths, with those that are None.

    A longest chunk that is named has at most the `reads` tokens that the embedder reads, and the
    target is `TARGET` of it. Otherwise both are those of `present`. The overlap is that of
    `present`, at most half the target.

    Raises InvalidRequest, which names the length and its bounds, if it contradicts another one.
    """
    longest = present.max_tokens if max_tokens is None else min(max_tokens, reads)
    target = target_tokens
    if target is None and max_tokens is None:
        target = present.target_tokens
    elif target is None:
        target = max(SHORTEST, round(longest * TARGET))
    shared = overlap_tokens
    if shared is None:
        shared = min(present.overlap_tokens, target // 2)
    _check("target_tokens", target, SHORTEST, longest)
    _check("overlap_tokens", shared, 0, target - 1)
    return ChunkingSettings(target_tokens=target, max_tokens=longest, overlap_tokens=shared)


def _check(name: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise InvalidRequest(
            f"{name} is {value}, but must be from {least} to {most}",
            hint="overlap_tokens is less than target_tokens, which is at most max_tokens.",
        )
