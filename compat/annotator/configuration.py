"""The settings that Callslip reads from the original's `doc_retriever_config.json`."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from callslip.errors import SettingsError

LARGEST = 1_000_000


@dataclass(frozen=True)
class Tokenizer:
    """How the vectorizer counts words: with or without stop words, as stems or as written."""

    filter_stopwords: bool = True
    lemmas: bool = False

    @classmethod
    def of(cls, fields: Any) -> "Tokenizer":
        """Read the settings from a JSON object; raise ValueError if a value is not a boolean."""
        values = {name: fields[name] for name in cls.__dataclass_fields__ if name in fields}
        if not all(isinstance(value, bool) for value in values.values()):
            raise ValueError(f"{' and '.join(values)} of the tokenizer are true or false")
        return cls(**values)

    def as_json(self) -> dict[str, bool]:
        """Return the settings as a JSON object."""
        return asdict(self)


@cache
def tokenizer(path: Path | None) -> Tokenizer:
    """Read the first tokenizer of a configuration file; return the defaults if there is none.

    Raises SettingsError for an unreadable or invalid file.
    """
    if path is None:
        return Tokenizer()
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError("it is too large")
        config = json.loads(path.read_text(encoding="utf-8-sig"))
        for section in _sections(config):
            if isinstance(section.get("tokenizer"), dict):
                return Tokenizer.of(section["tokenizer"])
    except OSError as error:
        raise SettingsError(f"annotator.config_path: {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"annotator.config_path: {path} is no configuration: {error}") from None
    return Tokenizer()


def _sections(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from _sections(inner)
