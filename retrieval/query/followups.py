"""Rules that rewrite a follow-up question so that it is complete without the earlier questions.

`And for twins?` after `How long is leave?` becomes `How long is leave for twins?`.
`Who approves it?` gets the topic of the earlier question. A complete question is not changed, and
neither is a long one, because its `it` refers to its own words.
"""

import re
from collections.abc import Callable, Sequence
from datetime import date, datetime
from functools import cache, partial
from typing import NamedTuple

from callslip.languages import DEFAULT, Codes, function_words, languages
from callslip.languages.contract import FollowUps
from callslip.retrieval.query.time_expressions import without_time

MOST_WORDS = 5
"""The maximum number of words of a fragment (a preposition and its object)."""

MOST_TAILS = 3
"""The maximum number of fragments that follow a base question; the newest are kept."""

MOST_TOPIC = 12
"""The maximum number of words (the last ones) of an earlier question's topic, when a later question
refers to it."""

LONG = 6
"""The minimum number of content words of a question that is complete although it refers to
something. Follow-ups had at most five; docs/quality.md has the complete questions."""


class _Words:
    """The follow-up rules of several languages as combined patterns."""

    def __init__(self, each: Sequence[FollowUps]) -> None:
        leads = "|".join(lead for words in each for lead in words.leads)
        within = "|".join(words.points_within for words in each if words.points_within)
        asking = "|".join((*(form for words in each for form in words.asking), "[?!.,]"))
        self.each = each
        self.lead = re.compile(rf"^(?:(?:{leads})(?=[\s,?]|$)[\s,]*)+", re.I)
        self.asking = re.compile(asking, re.I)
        self.points_within = re.compile(within or r"(?!)", re.I)

    def fragment(self, text: str) -> tuple[FollowUps, re.Match[str]] | None:
        """Return the match of a fragment and the rules of its language; None if nothing matches."""
        return next(((words, m) for words in self.each if (m := words.fragment.match(text))), None)

    def points(self, text: str) -> bool:
        """Whether the text refers to something outside of itself."""
        outside = self.points_within.sub(" ", text)
        return any(words.points.search(outside) for words in self.each)

    def complete(self, text: str) -> bool:
        """Whether the text has a verb or a question word of its own."""
        return any(words.complete.search(text) for words in self.each)


@cache
def _words(codes: Codes) -> _Words:
    return _Words([language.follow_ups for language in languages(codes)])


class Standing(NamedTuple):
    """A complete question: the base question, and the fragments of later questions (`tails`)."""

    base: str
    tails: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The base and the fragments as one question."""
        if not self.tails:
            return self.base
        return f"{self.base.rstrip(' ?.!')} {' '.join(self.tails)}?"


def stand(
    question: str,
    before: Sequence[Standing],
    codes: Codes = DEFAULT,
    *,
    today: date | None = None,
) -> Standing:
    """Return the complete form of a question; `before` has the earlier questions, oldest first.

    A time of the question replaces the time of the earlier ones. `today` is the day from which
    relative times count; default: the local day.
    """
    text = " ".join(question.split())
    if not before:
        return Standing(text)
    words, today = _words(codes), today or datetime.now().astimezone().date()
    timeless = partial(without_time, today=today, codes=codes)
    last, rest = before[-1], words.lead.sub("", text)
    if timeless(rest) != rest:
        last = _mapped(last, timeless)
    stripped = rest.rstrip(" ?.!")
    if stripped and _is_fragment(rest, timeless(rest), words, led=rest != text):
        kind = _kind(timeless(stripped), words)
        tails = tuple(
            tail for tail in last.tails if kind is None or _kind(timeless(tail), words) != kind
        )
        return Standing(last.base, (*tails, stripped)[-MOST_TAILS:])
    if words.points(text) and not _is_long(text, words, codes):
        topic = " ".join(_topic(last.text, words).split()[-MOST_TOPIC:])
        if topic:
            return Standing(f"{text.rstrip(' ?.!')} {topic}?")
    return Standing(text)


def _mapped(standing: Standing, change: Callable[[str], str]) -> Standing:
    """Change the parts of a question; a base stays if nothing remains, such tails are left out."""
    base, *tails = map(change, (standing.base, *standing.tails))
    return Standing(
        base if any(map(str.isalnum, base)) else standing.base,
        tuple(tail for tail in tails if any(map(str.isalnum, tail))),
    )


def _is_fragment(rest: str, timeless: str, words: _Words, *, led: bool) -> bool:
    if len(rest.split()) > MOST_WORDS:
        return False
    if words.fragment(rest) or not _topic(timeless, words):
        return True
    return led and not words.complete(rest)


def _is_long(text: str, words: _Words, codes: Codes) -> bool:
    return len({*_topic(text.casefold(), words).split()} - function_words(codes)) >= LONG


def _kind(tail: str, words: _Words) -> str | None:
    """Return the joining word of a fragment; a new fragment replaces one with the same word."""
    if joined := words.fragment(tail):
        by = joined[1]["by"].casefold()
        return joined[0].alike.get(by, by)
    return None


def _topic(text: str, words: _Words) -> str:
    return " ".join(words.asking.sub(" ", text).split())
