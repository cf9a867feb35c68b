"""Callslip's public face: the errors a caller can meet and the version."""

from importlib.metadata import version

from callslip.errors import CallslipError, PermanentError, TransientError

__version__ = version("callslip")

__all__ = ["CallslipError", "PermanentError", "TransientError", "__version__"]
