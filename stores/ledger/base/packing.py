"""Values of JSON in compressed columns."""

import json
from typing import Any

import zstandard

from callslip.errors import LedgerError

_LEVEL = 6


def pack(value: object) -> bytes:
    """Return the value as compressed JSON."""
    plain = json.dumps(value, separators=(",", ":"))
    return zstandard.ZstdCompressor(_LEVEL, write_checksum=True).compress(plain.encode())


def unpack(packed: bytes) -> Any:
    """Return the value of compressed JSON. Raises LedgerError if it is damaged."""
    try:
        return json.loads(zstandard.ZstdDecompressor().decompress(packed))
    except (zstandard.ZstdError, ValueError) as error:
        raise LedgerError(f"a compressed value of the ledger is damaged: {error}") from error
