"""Drafts: answers with their citations before the validator has approved them."""

from dataclasses import dataclass

from callslip.agent.messages import Citation


@dataclass(frozen=True)
class DraftSentence:
    """A sentence of a draft; `citations` has the numbers of the sentence's citations."""

    text: str
    citations: tuple[int, ...]


@dataclass(frozen=True)
class Draft:
    """An answer before validation.

    `declined` is true if the model found no answer in the passages.
    """

    sentences: tuple[DraftSentence, ...] = ()
    citations: tuple[Citation, ...] = ()
    by_model: bool = False
    declined: bool = False
