"""Reading dialogs in the format of Dream's agent; an error names the wrong field."""

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
"""Dialogs of a batch that run at once, so that a slow link does not delay other dialogs."""

MOST_DOCUMENTS = 200
"""The most documents that one dialog uses."""


@dataclass(frozen=True)
class Dialog:
    """One dialog of a batch; its properties raise InvalidRequest if a field has a wrong type.

    `number` is the dialog's position in the batch, from 0.
    """

    number: int
    fields: Mapping[str, Any]

    @property
    def id(self) -> object:
        """The id that the agent gave the dialog."""
        return self.fields.get("dialog_id", "")

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes of the human."""
        return section(section(self.fields, "human"), "attributes")

    @property
    def in_use(self) -> list[str]:
        """The ids of the documents that the dialog is about, once each."""
        return strings(self.attributes, "documents_in_use")

    @property
    def processed(self) -> Mapping[str, Any]:
        """The attributes of each document that the dialog has ever processed, by document id."""
        return section(self.attributes, "processed_documents")

    @property
    def model(self) -> Mapping[str, Any]:
        """The model that the last `/vectorize_documents` for this dialog returned."""
        return section(self.attributes, "model_info")

    def utterances(self, whose: str) -> list[Any]:
        """Return the utterances of the `human` or the `bot`."""
        value = self.fields.get(f"{whose}_utterances")
        if not isinstance(value, list | None):
            raise InvalidRequest(f"{whose}_utterances is no list")
        return value or []

    @property
    def last(self) -> Mapping[str, Any]:
        """The last utterance of the human; empty if there is none."""
        utterances = self.utterances("human")
        return _object(utterances[-1], "the last of human_utterances") if utterances else {}


def answers(
    dialogs: Iterable[object], answer: Callable[[Dialog], dict[str, Any]], seconds: float
) -> list[dict[str, Any]]:
    """Answer each dialog of a batch, in order.

    A dialog that fails, or that has not started within `seconds`, gets an empty answer and a log
    entry with the reason; the other dialogs continue.
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
            log.warning("dialog %d of the batch: %s: %s", number, error.slug, _log_text(error))
        except Exception:
            log.exception("dialog %d of the batch", number)
        return {}

    batch = list(enumerate(dialogs))
    if len(batch) < 2:
        return [one(dialog) for dialog in batch]
    with ThreadPoolExecutor(min(AT_A_TIME, len(batch)), "dialog") as pool:
        return list(pool.map(one, batch))


def _log_text(error: CallslipError) -> str:
    """Return the error's detail, and its advice if that is not the default of the error's class."""
    if error.advice == type(error).hint:
        return error.detail
    return f"{error.detail.rstrip('.')}. {error.advice}"


def section(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object in a field, an empty one if the field is missing or null.

    Raises InvalidRequest for a value of another type.
    """
    value = fields.get(name)
    return {} if value is None else _object(value, name)


def strings(fields: Mapping[str, Any], name: str) -> list[str]:
    """Return the texts in a field, once each; an empty list if the field is missing or null.

    Raises InvalidRequest for a value of another type, or for more than `MOST_DOCUMENTS` texts.
    """
    value = fields.get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidRequest(f"{name} is no list of texts")
    if len(value) > MOST_DOCUMENTS:
        raise InvalidRequest(f"{name} has {len(value)} entries, at most {MOST_DOCUMENTS} are taken")
    return list(dict.fromkeys(value))


def text(fields: Mapping[str, Any], name: str) -> str:
    """Return the text in a field, an empty one if the field is missing or null.

    Raises InvalidRequest for a value of another type.
    """
    value = fields.get(name)
    if not isinstance(value, str | None):
        raise InvalidRequest(f"{name} is no text")
    return value or ""


def _sound(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the answer; raise InvalidRequest if a part copied from the request is not JSON."""
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
