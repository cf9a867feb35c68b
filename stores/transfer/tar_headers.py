"""Checks the headers of a tar file before the module tarfile parses them.

tarfile reads a long header into memory, follows a chain of headers by recursion, stores the values
of global headers, and builds the map of a sparse file. A hostile file can make each of these
arbitrarily large. An archive needs only plain files and headers for long names or sizes.
"""

import tarfile
from typing import IO

LONGEST = 1 << 13
"""Maximum size in bytes of a header for a long name or size."""

MOST = 4
"""Maximum number of headers of one member."""

_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)
_LONG = (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME)


def check_headers(file: IO[bytes], offset: int) -> None:
    """Raise ValueError unless the member at the offset is a plain file with short headers.

    Accepts a truncated or invalid header, which tarfile itself reports.
    """
    for _ in range(MOST):
        file.seek(offset)
        try:
            block = file.read(tarfile.BLOCKSIZE)
            header = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError:
            return
        if header.type in _PLAIN:
            return
        if header.type not in _LONG:
            raise ValueError(f"{header.name[:80]!r} is not a plain file")
        if not 0 <= header.size <= LONGEST:
            raise ValueError("a header is too long")
        if b"GNU.sparse." in file.read(header.size):
            raise ValueError("a member is not a plain file")
        offset += tarfile.BLOCKSIZE * (1 + -(-header.size // tarfile.BLOCKSIZE))
    raise ValueError("a member has too many headers")
