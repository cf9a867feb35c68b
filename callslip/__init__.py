"""The package's public interface: the errors that a caller can meet, and the version."""

from typing import TYPE_CHECKING

from callslip.errors import CallslipError, PermanentError, TransientError

if TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name: str) -> str:
        """Read the version at its first use: reading the metadata of packages takes 30 ms."""
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import version

        return version("callslip")


__all__ = ["CallslipError", "PermanentError", "TransientError", "__version__"]
