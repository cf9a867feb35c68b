"""Chunk ids: hashes of the chunks' content, so that an unchanged chunk keeps its id."""

import hashlib
from collections import Counter


class Ids:
    """Creates chunk ids that are unique within a document."""

    def __init__(self, document_id: str) -> None:
        self._document_id = document_id
        self._seen: Counter[str] = Counter()

    def of(self, *parts: str) -> str:
        """Return the id of these parts; a repetition gets another id from its sequence number."""
        digest = _digest(self._document_id, *parts)
        self._seen[digest] += 1
        count = self._seen[digest]
        return digest if count == 1 else _digest(digest, str(count))


def _digest(*parts: str) -> str:
    """Return 32 hexadecimal digits of BLAKE2b; length prefixes separate the parts."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()
