"""What a command works on directly, without the desk: settings that lead to what runs here."""

from callslip.errors import SettingsError
from config import Settings, load
from stores.ledger import Ledger
from workers import runfile


def placed_settings() -> Settings:
    """The settings, with the addresses that `callslip up` chose for what it runs on this data.

    What the settings themselves name stays as it is; without `callslip up` nothing is filled in.
    """
    settings = load().settings
    run = runfile.read(settings.data_dir.absolute())
    if run is None or not run.is_running():
        return settings
    placed: dict[str, object] = {}
    if settings.broker.url is None:
        placed["broker"] = settings.broker.model_copy(update={"url": run.broker_url})
    if settings.chroma.url is None:
        placed["chroma"] = settings.chroma.model_copy(update={"url": run.chroma_url})
    return settings.model_copy(update=placed)


def open_ledger(settings: Settings) -> Ledger:
    """The ledger that is there; SettingsError where a command would make an empty one."""
    if settings.ledger.url is None and not (settings.data_dir / "ledger.db").exists():
        raise SettingsError(
            f"There is no ledger in {settings.data_dir.absolute()}.",
            hint="Run this where `callslip up` runs, or set CALLSLIP_DATA_DIR to its folder.",
        )
    ledger = Ledger(settings.ledger_url)
    ledger.create()
    return ledger
