"""Question analysis by rules: topic, language, time, named entities and intent."""

from dataclasses import dataclass
from datetime import date

from callslip.languages import DEFAULT, Codes, languages
from callslip.languages.contract import Intent
from callslip.models.entities import Recognizer
from callslip.models.text.language import lang
from callslip.retrieval.query.time_expressions import LONGEST, TimeExpression, read_time

__all__ = ["Intent", "Understood", "stated_time", "understand"]

_ORDER: tuple[Intent, ...] = ("definition", "how-to", "legal", "lookup", "entity")
"""The order of precedence if a question matches the forms of several intents."""


@dataclass(frozen=True)
class Understood:
    """The result of the analysis of a question.

    `text` is the question on one line. `topic` is the text without its time expression, which does
    not help to find a text: without it ko_law_versions gains .007 nDCG@10. `lang` is `ko`, `en` or
    empty. `entities` are distinct names. `as_of` is the day that the time expression `time_words`
    means; without a time expression they are None and empty.
    """

    text: str
    topic: str
    lang: str
    as_of: date | None
    time_words: str
    entities: tuple[str, ...]
    intent: Intent


def understand(query: str, today: date, recognizer: Recognizer) -> Understood:
    """Analyze a question by rules; the analyzer's model is the only language model.

    This takes about 1 ms. Only the first `LONGEST` characters are analyzed.
    """
    text = " ".join(query.split())
    head, codes = text[:LONGEST], recognizer.codes
    time = stated_time(head, today, codes)
    rest = f"{text[: time.start]}\n{text[time.end :]}" if time else text
    names = dict.fromkeys(
        e.name for e in recognizer.find_by_form(rest[:LONGEST]) if e.kind != "date"
    )
    topic = " ".join(rest.split()).strip(" ,()")
    return Understood(
        text=text,
        topic=topic if any(map(str.isalnum, topic)) else text,
        lang=lang(head, codes),
        as_of=time.day if time else None,
        time_words=time.words if time else "",
        entities=tuple(names),
        intent=_intent(head, codes),
    )


def stated_time(query: str, today: date, codes: Codes = DEFAULT) -> TimeExpression | None:
    """Return the time at which the question wants hits to be in force; None if it states none.

    A time that can also belong to the topic (`in 2019`, `2019년에`) counts only if the question is
    about rules: a report on 2019 was not in force in 2019.
    """
    head = query[:LONGEST]
    time = read_time(head, today, codes)
    if time is None or time.firm:
        return time
    rules = any(language.questions.rules.search(head) for language in languages(codes))
    return time if rules else None


def _intent(text: str, codes: Codes) -> Intent:
    for intent in _ORDER:
        for language in languages(codes):
            form = language.questions.intents.get(intent)
            if form and form.search(text):
                return intent
    return "general"
