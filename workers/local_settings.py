"""Provides settings and ledger to commands that use the stores directly, without the server."""

from contextlib import closing

from callslip.config import Settings, load
from callslip.errors import SettingsError, StoreDown
from callslip.stores.ledger import Ledger
from callslip.workers.supervision import runfile


def placed_settings() -> Settings:
    """The settings, with the URLs of the broker and of Chroma that `callslip up` runs on this data.

    URLs that the settings name stay as they are. If `callslip up` is not running, no URL is added.
    """
    settings = load().settings
    run = runfile.read(settings.data_dir.absolute())
    if run is None or not run.is_running():
        return settings
    placed: dict[str, object] = {}
    if settings.broker.url is None:
        placed["broker"] = settings.broker.model_copy(update={"url": run.broker_url})
    if settings.chroma.url is None:
        placed["chroma"] = settings.chroma.model_copy(update=run.chroma())
    return settings.model_copy(update=placed)


def upgrade_ledger(settings: Settings) -> None:
    """Make the ledger, or upgrade it to the newest revision, before any process works with it.

    Raises LedgerError or SettingsError if that fails. If the database server does not answer yet,
    each process upgrades the ledger when it first needs it.
    """
    with closing(Ledger(settings.ledger_url)) as ledger:
        try:
            ledger.create()
            ledger.outcomes.weigh_anew(settings.memory.half_life_weeks)
        except StoreDown:
            if settings.ledger.url is None:
                raise


def open_ledger(settings: Settings) -> Ledger:
    """Open the existing ledger. Raises SettingsError instead of making an empty one."""
    if settings.ledger.url is None and not (settings.data_dir / "ledger.db").exists():
        raise SettingsError(
            f"There is no ledger in {settings.data_dir.absolute()}.",
            hint="Run this where `callslip up` runs, or set CALLSLIP_DATA_DIR to its folder.",
        )
    ledger = Ledger(settings.ledger_url)
    ledger.create()
    return ledger
