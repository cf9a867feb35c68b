"""Artifacts in the blob store: compressed, and readable as they were stored before."""

import json
import zlib

import pytest
import zstandard

from callslip.ingestion import artifacts
from callslip.ingestion.values import Section

SECTIONS = [
    Section(
        f"chapter {number}", f"Chapter {number}", 1, number, 100 * number, 100 * number + 99, None
    )
    for number in range(100)
]


def test_json_is_compressed() -> None:
    stored = artifacts.SECTIONS.dump(SECTIONS)
    plain = zstandard.decompress(stored)
    assert len(json.loads(plain)) == 100
    assert len(stored) < len(plain) / 4
    assert artifacts.SECTIONS.load(stored) == SECTIONS


def test_what_earlier_versions_stored_is_read() -> None:
    plain = zstandard.decompress(artifacts.SECTIONS.dump(SECTIONS))
    assert artifacts.SECTIONS.load(plain) == SECTIONS
    assert artifacts.SECTIONS.load(zlib.compress(plain, 1)) == SECTIONS


def test_a_damaged_artifact_is_no_artifact() -> None:
    stored = artifacts.SECTIONS.dump(SECTIONS)
    cut, changed = stored[:-9], stored[:20] + b"\0\0\0\0" + stored[24:]
    for damaged in (cut, changed, stored[:4], b"", b"\x78"):
        with pytest.raises(ValueError, match=r"damaged|JSON|EOF"):
            artifacts.SECTIONS.load(damaged)
