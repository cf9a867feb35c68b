"""Sentences that do not stand alone: what of their neighbours is quoted with them.

A lead-in (`The requirements are as follows:`) says nothing without its list, and a sentence that
begins with a connective (`Therefore`, `또한`) depends on the sentence before it.
"""

import re
from collections.abc import Sequence

from callslip.retrieval.evidence.sentences import Span

_LEADS_IN = re.compile(
    r"(?:[:：]"
    r"|\b(?:as follows|(?:the|these) following(?: \w+){0,4}|listed below)[.:]?"
    r"|다음과\s*같(?:다|습니다|아요|음)\.?|다음\s*각\s*호와\s*같다\.?"
    r"|다음(?:처럼|과\s*같이)\s+(?:\S+\s+){0,2}\S*(?:다|요)\.?)$",
    re.IGNORECASE,
)

_LISTED = re.compile(r"다음\s*각\s*[호목].*(?:다|음)\.?$", re.S)
"""A Korean statement about the entries of the list below it."""

_LEANS = re.compile(
    r"(?:therefore|however|thus|hence|moreover|furthermore|otherwise|instead|consequently"
    r"|nevertheless|in\s+addition|for\s+example|for\s+instance|in\s+this\s+case|in\s+that\s+case"
    r"|as\s+a\s+result|on\s+the\s+other\s+hand|similarly|likewise|in\s+other\s+words)\b"
    r"|(?:so|but|and|also|then|yet)\b[, ]"
    r"|(?:또한|또|그러나|하지만|따라서|그러므로|그리고|그래서|예를\s*들어|예컨대|다만|이\s*경우|이때"
    r"|그런데|한편|반면|즉|이에\s*따라|그\s*결과)(?=[\s,])",
    re.IGNORECASE,
)

_ENTRY = re.compile(
    r"[ \t]*(?:[-*+•·▪◦○●■□–]|[①-⑳]|\|"
    r"|\(?(?:\d{1,3}|[a-zA-Z]|[ivx]{1,4}|[가나다라마바사아자차카타파하])[.)](?=\s))[ \t]*"
    r"|[ \t]{2,}|\t"
)

_NUMBER = re.compile(r"(?:\d{1,3}|[가-하])(?=(?:의\d+)?\\?[.)])")
"""The number of an indented entry; a backslash of Markdown may stand behind it."""

END = 80
"""The characters of a sentence in which an announcement stands."""

MOST_SENTENCES = 12
LONGEST = 900
"""The maximum number of sentences and of characters that are quoted with a lead-in."""


def leads_in(sentence: str) -> bool:
    """Whether a sentence only announces a list."""
    return _LEADS_IN.search(" ".join(sentence[-END:].split())) is not None


def list_after(text: str, spans: Sequence[Span], at: int) -> int:
    """Return the number of the last sentence of the list that sentence `at` announces.

    It is `at` itself if no list follows.
    """
    last = at
    for i in range(at + 1, min(len(spans), at + 1 + MOST_SENTENCES)):
        line = text.rfind("\n", 0, spans[i].start) + 1
        begins = line > spans[i - 1].end - 1
        entry = begins and _ENTRY.match(text, line, spans[i].start + 8) is not None
        continues = not begins and last > at
        if not (entry or continues) or spans[i].end - spans[at].start > LONGEST:
            break
        last = i
    return last


def lead_of(text: str, spans: Sequence[Span], at: int) -> int | None:
    """Return the number of the sentence that announces the list with the entry of sentence `at`.

    Returns None if the sentence is no entry of a list, or the text does not have the announcement.
    """
    kind = below = _mark(text, spans[at])
    for i in range(at - 1, -1, -1) if kind else ():
        sentence, above = text[spans[i].start : spans[i].end], _mark(text, spans[i])
        announces = leads_in(sentence) or _LISTED.search(sentence)
        if announces and below == kind != above:
            return i
        if not above:
            return None
        below = above
    return None


def _mark(text: str, span: Span) -> str:
    """The kind of mark of the list entry with a sentence, such as `1.`; empty if it is in none."""
    line = text.rfind("\n", 0, span.start) + 1
    match = _ENTRY.match(text, line, span.start + 8)
    if match is None:
        return ""
    number = _NUMBER.match(text, match.end()) if match[0].isspace() else None
    mark = number[0] if number else match[0].strip() or " "
    for letters, standard in (("[①-⑳]", "①"), ("[가-하]", "가"), ("[a-zA-Z]+", "a"), (r"\d+", "1")):
        mark = re.sub(letters, standard, mark)
    return mark


def leans(text: str, spans: Sequence[Span], at: int) -> bool:
    """Whether sentence `at` depends on the sentence before it, in the same paragraph."""
    start, end = spans[at]
    if at == 0 or "\n\n" in text[spans[at - 1].end : start]:
        return False
    return _LEANS.match(text[start:end].lstrip("*")) is not None
