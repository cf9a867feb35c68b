"""The types of the rules of one language.

A language is a module with a `LANGUAGE` of type `Language`.

A pattern sets its own flags. A field that is left out matches nothing. If several languages are
used together, their rules are tried in the order of the languages, unless a field says otherwise.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Unit = Literal["year", "quarter", "month", "week", "day"]
Intent = Literal["definition", "how-to", "legal", "lookup", "entity", "general"]
Cue = Literal["end", "through", "from", "revised"]
"""How a date limits the validity of a text. end: the first day on which it is no longer valid;
through: the last day on which it is valid; from: the first day on which it is valid; revised: the
day of a revision.
"""

NEVER = re.compile(r"(?!)")
"""A pattern that matches nothing."""


@dataclass(frozen=True)
class Script:
    """The letters of a language, and the fraction of a text's letters that identifies it."""

    letters: str
    """The inside of a character class of `re`."""
    share: float
    """The smallest such fraction for a script of only one language.

    For Latin the fraction must exceed it.
    """
    shared: bool = False
    """Whether several languages use the script; then their function words decide."""


@dataclass(frozen=True)
class Calendar:
    """Dates and parts of years as the language writes them.

    `months` are twelve patterns of a month's name. Each of `days` is a pattern with the groups
    `year`, `day`, and `month` (a name) or `month_no`. Each of `periods` is a compiled pattern with
    `year` or `short` (two digits), and, if it names a part of the year, `month`, `month_no`,
    `quarter`, `half` or `edge`. `ordinals` and `halves` map a word in the groups `quarter` and
    `half` to its number; `beginnings` are the words of `edge` that name the first quarter.
    """

    months: tuple[str, ...] = ()
    days: tuple[str, ...] = ()
    periods: tuple[re.Pattern[str], ...] = ()
    ordinals: Mapping[str, int] = field(default_factory=dict)
    halves: Mapping[str, int] = field(default_factory=dict)
    beginnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class RelativeTimes:
    """Times relative to today.

    `counted` has the groups `count` (digits or a key of `numbers`) and `unit` (a key of `units`)
    and means so many units ago. `named` has patterns of words, each with its unit and the distance
    from today in that unit; if several match, the first one counts. `before` and `after` are
    patterns before and after each of them.
    """

    counted: re.Pattern[str] = NEVER
    numbers: Mapping[str, int] = field(default_factory=dict)
    units: Mapping[str, Unit] = field(default_factory=dict)
    named: tuple[tuple[str, Unit, int], ...] = ()
    before: str = ""
    after: str = ""


@dataclass(frozen=True)
class TimeCues:
    """Words around a time that give its meaning.

    A match of `ahead` ends where the time begins; a match of `behind` begins where the time ends.
    Their groups: `firm` (the state of things at that time), `before`, `since`; other groups only
    mention the time. `articles` are the ends of `ahead` after which digits are no year (`in the
    2010 drought`).
    """

    ahead: re.Pattern[str] = NEVER
    behind: re.Pattern[str] = NEVER
    articles: tuple[str, ...] = ()
    of_subject_ahead: re.Pattern[str] = NEVER
    """Ends where the cue begins; the time belongs to the subject: `born in 1990`."""
    of_subject_behind: re.Pattern[str] = NEVER
    names: re.Pattern[str] = NEVER
    """Ends where a time begins that is part of a name: `the act of 2010`."""
    counted: re.Pattern[str] = NEVER
    """Begins after digits that are a number, not a year: `2010 cases`."""
    compares: re.Pattern[str] = NEVER
    """Matches in a question that compares two times."""
    between: tuple[str, ...] = ()
    """Patterns of the words between the two ends of a range."""


@dataclass(frozen=True)
class Questions:
    """Classifies questions. `rules` matches questions about laws, rules and rates."""

    rules: re.Pattern[str] = NEVER
    intents: Mapping[Intent, re.Pattern[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class FollowUps:
    """Words of a question that depends on an earlier question."""

    leads: tuple[str, ...] = ()
    """Patterns of words that begin such a question: `and`, `what about`."""
    fragment: re.Pattern[str] = NEVER
    """Matches a fragment at its beginning. Group `by` is the preposition or particle that joins it.
    Of two fragments with the same `by`, the later one replaces the earlier one.
    """
    alike: Mapping[str, str] = field(default_factory=dict)
    """Variants of a particle, mapped to its standard form."""
    points: re.Pattern[str] = NEVER
    """A word that refers to something outside of the question."""
    points_within: str = ""
    """Pattern of text that looks like such a word and is not: `is it possible`."""
    asking: tuple[str, ...] = ()
    """Patterns of question words, which do not belong to the topic."""
    complete: re.Pattern[str] = NEVER
    """Matches if the question has a verb or a question word."""


@dataclass(frozen=True)
class Sentences:
    """The rules for the ends of sentences."""

    abbreviation: re.Pattern[str] = NEVER
    """Ends with a full stop that does not end a sentence."""
    continues: re.Pattern[str] = NEVER
    """Begins with a full stop that does not end a sentence because of what follows it."""
    numbered_line: str = ""
    """Pattern of the beginning of a line of a list or a statute."""
    letters: str = ""
    """Letters before a full stop at which a chunk may end, as the inside of a character class."""
    small: str = ""
    """Those of `letters` that cannot begin a sentence."""
    uncut: tuple[str, ...] = ()
    """Patterns of fixed width: abbreviations after which a chunk must not end."""


@dataclass(frozen=True)
class Headings:
    """The rules for lines that are headings.

    `levelled` matches a numbered unit; the word in its group `unit` gives the level by `levels`.
    `inline` are the units whose text may follow on the same line. `supplement` matches the start of
    a part of the highest level. `named` matches `Part 2`, with the unit in the group `name`;
    `trailing` are the names of units at the end of a document, which have the highest level.
    """

    levelled: re.Pattern[str] = NEVER
    levels: Mapping[str, int] = field(default_factory=dict)
    inline: frozenset[str] = frozenset()
    supplement: re.Pattern[str] = NEVER
    named: re.Pattern[str] = NEVER
    trailing: tuple[str, ...] = ()
    small_words: frozenset[str] = frozenset()
    """Words that are not capitalized in a heading in title case."""
    sentence: re.Pattern[str] = NEVER
    """Matches in a line that is a sentence, whatever its punctuation."""


@dataclass(frozen=True)
class ValidityCues:
    """Words around a date that say from when or until when a text is in force.

    `before` are patterns that end where a date begins, `after` patterns that begin where a date
    ends. `range_words` stand between two dates; `range_tail` is a pattern of what may follow the
    second one. `keys` are names of properties, in lower case with underscores.
    """

    before: Mapping[Cue, tuple[str, ...]] = field(default_factory=dict)
    after: Mapping[Cue, tuple[str, ...]] = field(default_factory=dict)
    range_words: tuple[str, ...] = ()
    range_tail: str = ""
    keys: Mapping[Cue, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Terms:
    """The rules for index terms of a language.

    A language with spaces between words has `stem`, a function of one word in lower case; with
    `plain`, diacritics are removed first. A language without spaces has `of_text`, which returns
    the terms of a normalized text in lower case. Text that matches `ignored` is removed first.
    `numbers` returns the numbers that are written in this language's own way.
    """

    stem: Callable[[str], str] | None = None
    plain: bool = False
    of_text: Callable[[str], Iterator[str]] | None = None
    ignored: tuple[str, ...] = ()
    numbers: Callable[[str], Iterator[str]] | None = None


class Amount(NamedTuple):
    """A number, with its unit, in `text[start:end]`.

    `dimension` is what it counts, empty if only a noun says so. `value` is in the smallest unit of
    the dimension: minutes for `time` up to weeks, months for `months` and years, hours modulo 12
    for `clock`.
    """

    number: float
    dimension: str
    value: float
    start: int
    end: int


def clock(hour: str, minute: str, start: int, end: int) -> Amount:
    """Return the amount of a time of day."""
    value = int(hour) % 12 + int(minute) / 60
    return Amount(int(hour), "clock", value, start, end)


def digits(text: str) -> Iterator[Amount]:
    """Iterate over the numbers in digits of a text, without what they count."""
    for match in re.finditer(r"\d+(?:[.,]\d+)*", text):
        number = float(re.sub(r"\D", "", match[0]))
        yield Amount(number, "", number, *match.span())


@dataclass(frozen=True)
class Kinds:
    """The kinds of answers: what a question asks for, and which statements have it.

    `questions` has patterns of questions, each with the kinds that they ask for: `number`,
    `date`, `address`, or the dimension of an `Amount`. A match of `counted` is a question for a
    number; its unit follows the match: `how many`. A match of `number` or `date` is one; years in
    digits and addresses are the same in all languages. A match of `labels` is a label whose
    `number` stands before its `name`: `4급지`. `joined_before` and `joined_behind` match what joins
    the number of a label to another one or makes it a range: `or later`, `이상`. Of each pair in
    `needed` the answer to a question that matches the first pattern matches the second one.
    """

    questions: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = ()
    counted: re.Pattern[str] = NEVER
    number: re.Pattern[str] = re.compile(r"\d")
    date: re.Pattern[str] = NEVER
    labels: re.Pattern[str] = NEVER
    joined_before: re.Pattern[str] = NEVER
    joined_behind: re.Pattern[str] = NEVER
    needed: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = ()


@dataclass(frozen=True)
class Claims:
    """The rules for comparing a sentence of an answer with a passage.

    A match of `clause` ends where a clause begins. `negation` matches words that deny, after the
    matches of `bounds` were removed (`no more than`). Of each pair of `opposites` a true sentence
    has the one that its passage has. `measures` returns the currency, the half of the day or the
    unit that a text states for an amount. `synonyms` are groups of nouns that name the same.
    `general` are words that name nothing in particular, so that a paraphrase may add them.
    `specific` returns the words of a text that may be nouns; None if the language has no rule for
    them. `command` matches a text that tells whoever answers what to say.
    """

    amounts: Callable[[str], Iterator[Amount]] = digits
    clause: re.Pattern[str] = NEVER
    negation: re.Pattern[str] = NEVER
    bounds: re.Pattern[str] = NEVER
    opposites: tuple[tuple[re.Pattern[str], re.Pattern[str]], ...] = ()
    measures: Callable[[str, Amount], frozenset[str]] = lambda _text, _amount: frozenset()
    synonyms: tuple[frozenset[str], ...] = ()
    general: frozenset[str] = frozenset()
    specific: Callable[[str], Iterator[str]] | None = None
    command: re.Pattern[str] = NEVER


@dataclass(frozen=True)
class Ranges:
    """Words of a range of amounts, as patterns: `3 to 5`, `over 10`, `3년 이상 5년 미만`.

    `between` has the words between the two ends. `lower_before` and `lower_behind` have the words
    before and behind a lower end, `upper_before` and `upper_behind` those of an upper end.
    `without` matches words that exclude the end itself: `over`, `미만`. `joins` has the words
    between two amounts that are one (`2 hours and a half`) or two of a list (`5 and 10`).
    """

    between: tuple[str, ...] = ()
    joins: tuple[str, ...] = ()
    lower_before: tuple[str, ...] = ()
    lower_behind: tuple[str, ...] = ()
    upper_before: tuple[str, ...] = ()
    upper_behind: tuple[str, ...] = ()
    without: re.Pattern[str] = NEVER


def words(text: str) -> frozenset[str]:
    """The words of a text with white space between them."""
    return frozenset(text.split())


def unchanged(text: str) -> str:
    """The text itself."""
    return text


@dataclass(frozen=True)
class Language:
    """All rules of one language; `code` is its ISO 639-1 code."""

    code: str
    script: Script
    function_words: frozenset[str]
    terms: Terms
    to_embed: Callable[[str], str] = unchanged
    """Normalizes the spelling of a query before it is embedded."""
    calendar: Calendar = Calendar()
    relative_times: RelativeTimes = RelativeTimes()
    time_cues: TimeCues = TimeCues()
    questions: Questions = Questions()
    follow_ups: FollowUps = FollowUps()
    sentences: Sentences = Sentences()
    headings: Headings = Headings()
    validity: ValidityCues = ValidityCues()
    claims: Claims = Claims()
    kinds: Kinds = Kinds()
    ranges: Ranges = Ranges()
