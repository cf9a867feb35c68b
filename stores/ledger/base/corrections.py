"""Corrections of a version's text, as values."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from pydantic import Field

from callslip.vocabulary import LeftOut

LONGEST_TEXT = 20_000
"""The maximum characters of a chunk that is corrected, before and after."""

MOST_CORRECTIONS = 1000
"""The maximum corrections of a version."""

_Text = Annotated[str, Field(max_length=LONGEST_TEXT)]


@dataclass(frozen=True)
class Correction:
    """A correction of an extracted text: `original` between `before` and `after` is replaced.

    `start` is the position of `original` in the text that the earlier corrections of the version
    leave. `left_out` says why the correction does not apply to the text of the version; None if it
    applies, or if the text has not been extracted yet.
    """

    correction_id: Annotated[str, Field(pattern="^[0-9a-f]{16}$")]
    start: Annotated[int, Field(ge=0, lt=2**31)]
    before: _Text
    original: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
    replacement: _Text
    after: _Text
    made_at: Annotated[float, Field(allow_inf_nan=False)]
    left_out: LeftOut | None = None

    @property
    def context(self) -> str:
        """The original and the text around it, by which a new text is searched."""
        return self.before + self.original + self.after

    @property
    def corrected_context(self) -> str:
        """The same with the replacement."""
        return self.before + self.replacement + self.after


Corrections = tuple[Correction, ...]


def as_json(corrections: Iterable[Correction]) -> list[dict[str, Any]] | None:
    """The JSON that the ledger stores; None without corrections."""
    return [asdict(each) for each in corrections] or None


def from_json(value: Iterable[dict[str, Any]] | None) -> Corrections:
    """The corrections of the JSON that the ledger stores."""
    return tuple(Correction(**each) for each in value or ())


def carried(value: Iterable[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """The corrections of a version for the next one, of which it is not known which apply."""
    return as_json(replace(each, left_out=None) for each in from_json(value))
