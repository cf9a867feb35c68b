"""Entities in Korean text: nouns from Kiwi, classified by their tags and by endings of names."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from callslip.languages.ko.morphemes import MORPHEMES, Morpheme
from callslip.languages.ko.terms import COMPOUNDING, PIECES
from callslip.languages.scripts import HANGUL
from callslip.models.e5.tokens import well_formed
from callslip.models.entities import korean_names as names
from callslip.models.entities.entity import Entity, Kind, settle
from callslip.models.text.index_form import Located, located

MOST_WORDS = 4
"""The most words in the name of a law; the name of a programme has at most two."""

LONGEST_WORD = 40
"""The most characters of a word that may be a name."""


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, words), key=len, reverse=True))


_NOUNS = frozenset((*COMPOUNDING, "SL"))
_HANGUL = re.compile(f"[{HANGUL}]")
_QUOTED = re.compile(r"「([^「」\n]{2,80})」")
_ABOUT = re.compile(
    r"(?:[가-힣·ㆍ,]+ ){0,8}[가-힣·ㆍ]+에 관한 (?:특별법|특례법|법률|조례|규칙|규정|협약)"
    r"(?: 시행령| 시행규칙)?"
)
_CLAUSE = re.compile(
    r"[가-힣]+(?:은|는|이|가|을|를|에서|으로|로|한|된|하는|되는|하여|하고"
    r"|따라|따른|때|한다|의해|[과와]는) "
)
_LAW = re.compile(
    rf"(?:(?:{_any(names.LAW_STEMS)})법|(?:특별|특례)법|[가-힣 ](?:{_any(names.LAWS)})"
    rf"|{_any(names.CODES)})\Z"
)
_ARTICLE = re.compile(r"\s?제\d+조")
_METHOD = re.compile(r"[가-힣]{2,}법")
_DECREES = ("시행령", "시행규칙")
_BEFORE_LAW = ("개정", "현행", "종전", "위반", "관련", "같은", "해당")
_BODY = re.compile(f"(?P<stem>.+?)(?:{_any(names.BODIES)})")
_PROGRAMME = re.compile(f"(?P<stem>.+?)(?:{_any(names.PROGRAMMES)})")
_GENERIC = re.compile(f"(?:{_any((*names.GENERIC, *names.BODIES, *names.PROGRAMMES))})*")
_REGION = re.compile(f".+(?:{_any(names.REGIONS)})")
_PERSON = re.compile(
    rf"(?<![가-힣])(?P<name>[{names.SURNAMES}][가-힣]{{2}})"
    rf" (?:{_any(names.TITLES)})(?![가-힣]{{3}})"
)
_OFFICE = re.compile(r".*[부청처원회사시군구도국실과팀당측]")


@dataclass(frozen=True)
class _Word:
    """A sequence of nouns without a space between them."""

    parts: tuple[Morpheme, ...]
    text: str
    start: int
    end: int


class Korean:
    """Finds entities in Korean text. Threads may share an instance."""

    def find(self, text: str) -> list[Entity]:
        """Return the entities of a text, without dates."""
        quoted = (
            Entity(name, "law" if _LAW.search(name) else "name", m.start(1), m.end(1))
            for m in _QUOTED.finditer(text)
            if (name := " ".join(m[1].split()))
        )
        people = (
            Entity(m["name"], "person", m.start("name"), m.end("name"))
            for m in _PERSON.finditer(text)
            if not _OFFICE.fullmatch(m["name"])
        )
        nouns = (e for phrase in _phrases(text) for e in _named(phrase, text))
        return settle(quoted, _titled_laws(text), people, nouns)


def _titled_laws(text: str) -> Iterator[Entity]:
    """Iterate over laws such as 남녀고용평등과 일·가정 양립 지원에 관한 법률.

    A title begins after the last clause that precedes it.
    """
    for match in _ABOUT.finditer(text):
        head = match[0][: match[0].rindex("에 관한")]
        start = match.start() + max((m.end() for m in _CLAUSE.finditer(head)), default=0)
        yield Entity(text[start : match.end()], "law", start, match.end())


def _phrases(text: str) -> Iterator[list[_Word]]:
    """Iterate over sequences of words with one space between them."""
    phrase: list[_Word] = []
    for word in _words(text):
        if phrase and text[phrase[-1].end : word.start] != " ":
            yield phrase
            phrase = []
        phrase.append(word)
    if phrase:
        yield phrase


def _words(text: str) -> Iterator[_Word]:
    """Iterate over the words by the morphemes of the indexed form, which the terms need too."""
    form = located(text)
    if form is None:
        form = Located(well_formed(text), range(len(text)), range(1, len(text) + 1))
    for piece in PIECES.finditer(form.text):
        if not _HANGUL.search(piece[0]):
            continue
        parts: list[Morpheme] = []
        for token in MORPHEMES.get().of(piece[0]):
            noun = token.tag in _NOUNS
            if parts and not (noun and token.start == parts[-1].end):
                yield _word(parts, text, form, piece.start())
                parts = []
            if noun:
                parts.append(token)
        if parts:
            yield _word(parts, text, form, piece.start())


def _word(parts: list[Morpheme], text: str, form: Located, at: int) -> _Word:
    start, end = form.starts[at + parts[0].start], form.ends[at + parts[-1].end - 1]
    word = text[start:end]
    if parts[0].tag == "SL" and len(parts) > 1 and not word.islower():
        known = MORPHEMES.get().of(word)  # Kiwi knows GS리테일 in this case alone
        if [morpheme.tag for morpheme in known] == ["NNP"]:
            return _Word(known, word, start, end)
    return _Word(tuple(parts), word, start, end)


def _named(phrase: list[_Word], text: str) -> Iterator[Entity]:
    for n, word in enumerate(phrase):
        following = phrase[n + 1].text if n + 1 < len(phrase) else ""
        kind = _kind(word, text, following)
        first = word
        if n and word.text in _DECREES:
            kind = "law"
        if kind == "law":
            before = list(phrase[max(0, n - MOST_WORDS + 1) : n])
            while before and before[0].text in _BEFORE_LAW:
                before.pop(0)
            first = (before or [word])[0]
        elif kind is None and n and _PROGRAMME.fullmatch(phrase[n - 1].text + word.text):
            pair = phrase[n - 1].text + word.text
            if (word.text in names.PROGRAMMES) and not _generic(_PROGRAMME, pair):
                kind, first = "programme", phrase[n - 1]
        if kind:
            yield Entity(text[first.start : word.end], kind, first.start, word.end)


def _kind(word: _Word, text: str, following: str) -> Kind | None:
    name = word.text
    if len(name) > LONGEST_WORD:
        return None
    if name in names.MINISTRIES:
        return "organisation"
    if name in names.LOCATIONS:
        return "place"
    if _LAW.search(name):
        return "law"
    if _METHOD.fullmatch(name) and _ARTICLE.match(text, word.end):
        return "law"
    if _BODY.fullmatch(name):
        return None if _generic(_BODY, name) else "organisation"
    if _PROGRAMME.fullmatch(name):
        return None if _generic(_PROGRAMME, name) or len(name) < 4 else "programme"
    head = word.parts[0]
    if head.tag == "NNP":
        if _REGION.fullmatch(name):
            return "place"
        if len(name) == 3 and len(word.parts) == 1 and name[0] in names.SURNAMES:
            return "person"
        return "person" if _titled(name, following) else "name"
    if all(part.tag == "SL" for part in word.parts):
        return "organisation" if name.isalpha() and name.isupper() and len(name) > 1 else None
    return None


def _titled(name: str, following: str) -> bool:
    return 2 <= len(name) <= 4 and name[0] in names.SURNAMES and following in names.TITLES


def _generic(ending: re.Pattern[str], name: str) -> bool:
    """Return whether the part of the name before the ending has only common nouns."""
    match = ending.fullmatch(name)
    return match is None or _GENERIC.fullmatch(match["stem"]) is not None
