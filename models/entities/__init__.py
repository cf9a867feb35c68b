"""Recognition of entities: persons, organisations, places, laws, programmes, dates and names."""

from callslip.models.entities.entity import Entity, Kind
from callslip.models.entities.recognizer import Recognizer

__all__ = ["Entity", "Kind", "Recognizer"]
