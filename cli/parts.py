"""What a command works on directly, without the desk: settings that lead to what runs here."""

from config import Settings, load
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
