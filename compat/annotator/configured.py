"""CONFIG_PATH: what of the original's `doc_retriever_config.json` counts here."""

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
    """How words are counted: without stop words, and as they stand or by their stems."""

    filter_stopwords: bool = True
    lemmas: bool = False

    @classmethod
    def of(cls, fields: Any) -> "Tokenizer":
        """What JSON says; ValueError."""
        told = {name: fields[name] for name in cls.__dataclass_fields__ if name in fields}
        if not all(isinstance(value, bool) for value in told.values()):
            raise ValueError(f"{' and '.join(told)} of the tokenizer are true or false")
        return cls(**told)

    def told(self) -> dict[str, bool]:
        """As JSON."""
        return asdict(self)


@cache
def tokenizer(path: Path | None) -> Tokenizer:
    """The first tokenizer in a configuration; SettingsError where the file is none."""
    if path is None:
        return Tokenizer()
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError("it is too large")
        config = json.loads(path.read_text(encoding="utf-8-sig"))
        for found in _sections(config):
            if isinstance(found.get("tokenizer"), dict):
                return Tokenizer.of(found["tokenizer"])
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
