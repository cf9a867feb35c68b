"""Headers of a tar file, looked at before tarfile takes them.

It reads a long header whole, follows one to the next by recursion, keeps what global ones say, and
builds the map of a sparse file: each of them as large as a stranger likes. An archive needs plain
files, and before one of them a header that gives it a long name or size.
"""

import tarfile
from typing import IO

LONGEST = 1 << 13
"""Bytes of a header that gives a name or a size."""

MOST = 4
"""Headers of one member."""

_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE)
_LONG = (tarfile.XHDTYPE, tarfile.GNUTYPE_LONGNAME)


def check_headers(file: IO[bytes], offset: int) -> None:
    """Raise ValueError where what stands at the offset is no plain file with short headers.

    What is cut off, and what is no header at all, is left to tarfile.
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
