"""What a text names: persons, organisations, places, laws, programmes and days."""

from models.entities.entity import Entity, Kind
from models.entities.recognizer import Recognizer

__all__ = ["Entity", "Kind", "Recognizer"]
