"""The settings that Callslip reads from the original's `doc_retriever_config.json`."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from callslip.errors import SettingsError

LARGEST = 1_000_000

CLASS = "stream_spacy_tokenizer"
"""DeepPavlov's name of the tokenizer whose parameters are followed."""

FIXED: Mapping[str, tuple[str, ...]] = {
    "lowercase": ("true", "null"),
    "ngram_range": ("[1, 2]",),
    "stopwords": ("[]", "null"),
}
"""Parameters with the only values, as JSON, that this service has; a parameter may be missing."""

WITHOUT_EFFECT = frozenset(
    {"class_name", "name", "id", "in", "out", "disable", "batch_size", "spacy_model"}
)
"""Parameters that do not change which words are counted here."""


@dataclass(frozen=True)
class Tokenizer:
    """How the vectorizer counts words: with or without stop words, as stems or as written.

    `alphas_only`: whether words with a digit are left out.
    """

    filter_stopwords: bool = True
    lemmas: bool = False
    alphas_only: bool = False

    @classmethod
    def of(cls, fields: Any) -> "Tokenizer":
        """Read the settings from a JSON object; raise ValueError if a value is not a boolean."""
        known = (name for name in cls.__dataclass_fields__ if fields.get(name) is not None)
        values = {name: fields[name] for name in known}
        if not all(isinstance(value, bool) for value in values.values()):
            raise ValueError(f"{' and '.join(values)} of the tokenizer are true or false")
        return cls(**values)

    def as_json(self) -> dict[str, bool]:
        """Return the settings as a JSON object."""
        return asdict(self)


@cache
def tokenizer(path: Path | None) -> Tokenizer:
    """Read the tokenizer of a configuration file; return the defaults if there is none.

    Raises SettingsError for an unreadable or invalid file, and names a tokenizer or a parameter
    that this service does not have.
    """
    if path is None:
        return Tokenizer()
    try:
        if path.stat().st_size > LARGEST:
            raise ValueError("it is too large")
        config = json.loads(path.read_text(encoding="utf-8-sig"))
        return _only([_followed(fields) for fields in _tokenizers(config)])
    except OSError as error:
        raise SettingsError(f"annotator.config_path: {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"annotator.config_path: {path} cannot be used: {error}") from None


def _only(tokenizers: list[Tokenizer]) -> Tokenizer:
    if len(set(tokenizers)) > 1:
        raise ValueError("its tokenizers differ, and here one counts the words")
    return tokenizers[0] if tokenizers else Tokenizer()


def _tokenizers(config: Any) -> Iterator[dict[str, Any]]:
    """The parameters of every tokenizer: of a component, or of a step of its own.

    A component may name its tokenizer's step by the id, as `#ID`.
    """
    sections = list(_sections(config))
    steps = {f"#{section['id']}": section for section in sections if "id" in section}
    for section in sections:
        if str(section.get("class_name", "")).endswith("_tokenizer"):
            yield section
        named = section.get("tokenizer")
        if isinstance(named, str):
            if named not in steps:
                raise ValueError(f"there is no tokenizer {named!r}")
            yield steps[named]
        elif isinstance(named, dict):
            yield named
        elif named is not None:
            raise ValueError("a tokenizer is a section or the #ID of one")


def _followed(fields: dict[str, Any]) -> Tokenizer:
    """The tokenizer of these parameters; raise ValueError for what this service does not have."""
    kind = fields.get("class_name", fields.get("name", CLASS))
    if kind != CLASS:
        raise ValueError(f"the tokenizer {kind!r} is not supported, only {CLASS}")
    for name, value in fields.items():
        if name in FIXED and json.dumps(value) not in FIXED[name]:
            only = " or ".join(FIXED[name])
            raise ValueError(f"{name} of the tokenizer is {json.dumps(value)}, supported is {only}")
        if name not in (*FIXED, *WITHOUT_EFFECT, *Tokenizer.__dataclass_fields__):
            raise ValueError(f"the tokenizer has the unknown parameter {name!r}")
    return Tokenizer.of(fields)


def _sections(value: Any) -> Iterator[dict[str, Any]]:
    if not isinstance(value, dict | list):
        raise ValueError("it has no sections")
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, dict | list):
            yield from _sections(inner)
