"""Every setting: its model, and the values in force in this process."""

from config.describe import Described, describe
from config.load import Loaded, environment, get_settings, load
from config.masking import masked
from config.settings import Settings

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
