"""What a server frees is overwritten, so that none of it reaches the server's files."""

import os
import subprocess
import sys

import pytest

from callslip.workers.supervision.services import OVERWRITE_FREED

FREE_AND_TAKE = """
import ctypes, sys
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
size = int(sys.argv[1])
first = libc.malloc(size)
ctypes.memset(first, ord("A"), size)
libc.free(first)
print(ctypes.string_at(libc.malloc(size), size).count(b"A" * 8))
"""


@pytest.mark.skipif(not hasattr(os, "confstr"), reason="no POSIX system")
@pytest.mark.parametrize("size", [24, 400, 1_000, 5_000])
def test_memory_that_is_freed_is_overwritten(size: int) -> None:
    if "glibc" not in (os.confstr("CS_GNU_LIBC_VERSION") or ""):
        pytest.skip("this system's C library is not glibc")
    command = [sys.executable, "-c", FREE_AND_TAKE, str(size)]
    left = subprocess.run(
        command, env={**os.environ, **OVERWRITE_FREED}, capture_output=True, text=True, check=True
    )
    assert int(left.stdout) == 0
