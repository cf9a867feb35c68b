"""PDFium's functions without the checks of ctypes, which take longer than most calls."""

import ctypes
from collections.abc import Callable
from typing import Any


def unchecked(function: Any) -> Callable[..., Any]:
    """Return a function of PDFium that takes pointers, `byref` and integers as they are.

    A call takes a fifth of the time. Wrong arguments are undefined behaviour, as in C. Other
    threads wait meanwhile: use it for functions that look something up.
    """
    return ctypes.PYFUNCTYPE(function.restype)(ctypes.cast(function, ctypes.c_void_p).value or 0)
