"""Ids of chunks: functions of what they hold, so that what did not change keeps its id."""

import hashlib
from collections import Counter


class Ids:
    """Gives ids that are unique within a document."""

    def __init__(self, document_id: str) -> None:
        self._document_id = document_id
        self._seen: Counter[str] = Counter()

    def of(self, *parts: str) -> str:
        """The id of what these parts say; the same again gets another one, by its number."""
        digest = _digest(self._document_id, *parts)
        self._seen[digest] += 1
        count = self._seen[digest]
        return digest if count == 1 else _digest(digest, str(count))


def _digest(*parts: str) -> str:
    """32 hexadecimal digits of BLAKE2b; the lengths keep neighbours apart."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()
