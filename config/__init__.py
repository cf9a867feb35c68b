"""All settings: their models, and the current values in this process."""

from callslip.config.describe import Described, describe
from callslip.config.load import Loaded, environment, get_settings, load
from callslip.config.masking import masked
from callslip.config.settings import Settings

__all__ = [
    "Described",
    "Loaded",
    "Settings",
    "describe",
    "environment",
    "get_settings",
    "load",
    "masked",
]
