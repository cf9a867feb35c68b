"""The stores there are; a new one is a folder beside this file and a line in it."""

from collections.abc import Callable, Mapping

from callslip.errors import SettingsError
from config.settings import Settings
from stores.contract import Store


def make_store(settings: Settings, kind: str) -> Store:
    """Make the store of this kind for this process, after a fork; it connects at its first use.

    Raises SettingsError for an unknown kind and where a needed setting is missing.
    """
    if kind not in STORES:
        raise SettingsError(f"There is no store {kind!r}; there are: {', '.join(STORES)}.")
    return STORES[kind](settings)


def _chroma(settings: Settings) -> Store:
    from stores.chroma import ChromaStore  # its client takes a second to import

    if settings.chroma.url is None:
        raise SettingsError(
            "chroma.url is not set.", hint="Start with `callslip up`, or name a Chroma server."
        )
    return ChromaStore(settings.chroma.url, settings.index_dir)


STORES: Mapping[str, Callable[[Settings], Store]] = {"chroma": _chroma}
