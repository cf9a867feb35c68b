"""Reading dialogs as the agent of Dream sends them: whatever is not as it should be is named."""

import json
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from logging import getLogger
from typing import Any

from callslip.errors import CallslipError, InvalidRequest

log = getLogger(__name__)

AT_A_TIME = 4
"""Dialogs of one batch, so that one with a slow link does not hold up the others."""

MOST_DOCUMENTS = 200
"""In use in one dialog."""


@dataclass(frozen=True)
class Dialog:
    """One dialog of a batch; InvalidRequest where a field that is asked for has another shape.

    `number` is its place in the batch, from 0.
    """

    number: int
    fields: Mapping[str, Any]

    @property
    def id(self) -> object:
        """What the agent calls it."""
        return self.fields.get("dialog_id", "")

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """Those of the human."""
        return section(section(self.fields, "human"), "attributes")

    @property
    def in_use(self) -> list[str]:
        """The ids of the documents that are talked about, once each."""
        return strings(self.attributes, "documents_in_use")

    @property
    def processed(self) -> Mapping[str, Any]:
        """What is known of each document that was ever processed, by id."""
        return section(self.attributes, "processed_documents")

    @property
    def model(self) -> Mapping[str, Any]:
        """What `/vectorize_documents` answered before."""
        return section(self.attributes, "model_info")

    def utterances(self, whose: str) -> list[Any]:
        """What the human or the bot said."""
        found = self.fields.get(f"{whose}_utterances")
        if not isinstance(found, list | None):
            raise InvalidRequest(f"{whose}_utterances is no list")
        return found or []

    @property
    def last(self) -> Mapping[str, Any]:
        """What the human said last."""
        said = self.utterances("human")
        return _object(said[-1], "the last of human_utterances") if said else {}


def answers(
    dialogs: Iterable[object], answer: Callable[[Dialog], dict[str, Any]], seconds: float
) -> list[dict[str, Any]]:
    """The answer to each dialog, in order; an empty one where there is none, its reason logged.

    One dialog never takes another with it. None is begun after so many seconds.
    """
    until = time.monotonic() + seconds

    def one(numbered: tuple[int, object]) -> dict[str, Any]:
        number, dialog = numbered
        if time.monotonic() > until:
            log.warning("dialog %d of the batch: the others took %g s", number, seconds)
            return {}
        try:
            return _sound(answer(Dialog(number, _object(dialog, "the dialog"))))
        except CallslipError as error:
            log.warning("dialog %d of the batch: %s: %s", number, error.slug, _told(error))
        except Exception:
            log.exception("dialog %d of the batch", number)
        return {}

    batch = list(enumerate(dialogs))
    if len(batch) < 2:
        return [one(dialog) for dialog in batch]
    with ThreadPoolExecutor(min(AT_A_TIME, len(batch)), "dialog") as pool:
        return list(pool.map(one, batch))


def _told(error: CallslipError) -> str:
    """What is wrong, and what was said to do in this very case; a general advice is of the desk."""
    if error.advice == type(error).hint:
        return error.detail
    return f"{error.detail.rstrip('.')}. {error.advice}"


def section(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object of a name; an empty one where there is none."""
    value = fields.get(name)
    return {} if value is None else _object(value, name)


def strings(fields: Mapping[str, Any], name: str) -> list[str]:
    """The list of texts of a name, each once; an empty one where there is none."""
    found = fields.get(name)
    if found is None:
        return []
    if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
        raise InvalidRequest(f"{name} is no list of texts")
    if len(found) > MOST_DOCUMENTS:
        raise InvalidRequest(f"{name} has {len(found)} entries, at most {MOST_DOCUMENTS} are taken")
    return list(dict.fromkeys(found))


def text(fields: Mapping[str, Any], name: str) -> str:
    """The text of a name; an empty one where there is none."""
    found = fields.get(name)
    if not isinstance(found, str | None):
        raise InvalidRequest(f"{name} is no text")
    return found or ""


def _sound(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, parts of which are as they were sent; InvalidRequest where it is no JSON."""
    try:
        json.dumps(answer, allow_nan=False)
    except (ValueError, RecursionError):
        raise InvalidRequest(
            "the attributes hold NaN or Infinity, or are nested too deeply"
        ) from None
    return answer


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{what} is no object")
    return value
