"""What a question says beside its topic: language, time, names, the kind of answer it wants."""

import re
from dataclasses import dataclass
from datetime import date
from typing import Literal

from models.entities import Recognizer
from models.language import lang
from retrieval.time_expressions import LONGEST, TimeExpression, read_time

Intent = Literal["definition", "how-to", "legal", "lookup", "entity", "general"]


@dataclass(frozen=True)
class Understood:
    """A question, read.

    `text` is on one line, `topic` is it without the words of time, by which no text is found:
    ko_law_versions gain .007 nDCG@10 without them. `lang` is `ko`, `en` or empty, `entities` are
    names without repetition.
    `as_of` is the day that its words `time_words` ask about, None and empty where they ask of none.
    """

    text: str
    topic: str
    lang: str
    as_of: date | None
    time_words: str
    entities: tuple[str, ...]
    intent: Intent


def understand(query: str, today: date, recognizer: Recognizer) -> Understood:
    """Read a question by rules, without any model of a language but the analyzer's.

    About 1 ms; of a text only the beginning is read.
    """
    text = " ".join(query.split())
    head = text[:LONGEST]
    told = time_asked(head, today)
    rest = f"{text[: told.start]}\n{text[told.end :]}" if told else text
    names = dict.fromkeys(
        e.name for e in recognizer.find_by_form(rest[:LONGEST]) if e.kind != "date"
    )
    topic = " ".join(rest.split()).strip(" ,()")
    return Understood(
        text=text,
        topic=topic if any(map(str.isalnum, topic)) else text,
        lang=lang(head),
        as_of=told.day if told else None,
        time_words=told.words if told else "",
        entities=tuple(names),
        intent=_intent(head),
    )


def time_asked(query: str, today: date) -> TimeExpression | None:
    """The time that hits should be in force at, by the question; None where it says none.

    A time that can be of the topic too (`in 2019`, `2019년에`) counts where rules are asked about:
    what reports on 2019 was not in force in 2019.
    """
    head = query[:LONGEST]
    told = read_time(head, today)
    return told if told and (told.firm or _RULES.search(head)) else None


_RULES = re.compile(
    r"\b(?:laws?|rules?|polic(?:y|ies)|regulations?|acts?|articles?|statutes?|standards?|handbook"
    r"|requirements?|require[ds]?|allow(?:ed|s|ance)?|permitted|entitle[ds]?|entitlement|eligib\w+|must"
    r"|limits?|caps?|rates?|fees?|tax(?:es)?|penalt(?:y|ies)|fines?|deductible|minimum|maximum|leave"
    r"|benefits?|RFC|protocol)\b"
    r"|법(?![가-힣]{0,2}원)|법률|시행령|조례|규정|규칙|조항|제\s?\d+\s?조|지침|고시|약관|요건|자격|한도|요율|세율"
    r"|과태료|벌칙|수당|장려금|지원금|급여|보험료|최저임금|의무|기한|허용|적용|시행",
    re.I,
)
_FORMS: tuple[tuple[Intent, str], ...] = (
    (
        "definition",
        r"\b(?:what\s(?:is|are|does)\s(?:an?\s|the\s)?[\w\s-]{2,40}(?:mean)?\?*$|defin(?:e|ed|ition)"
        r"|meaning\sof|stands?\sfor)|(?:이?란|라\s?함은)\s?(?:무엇|\?|$)|뜻|정의|의미",
    ),
    (
        "how-to",
        r"\bhow\s(?:do|does|can|to|should|would|could)\b|\bsteps?\sto\b|\bway\sto\b"
        r"|어떻게|방법|절차|하려면|하는\s?법(?![가-힣])",
    ),
    ("legal", _RULES.pattern),
    (
        "lookup",
        r"\b(?:how\s(?:much|many|long|old|far|often)|when|what\s(?:year|date|percentage|number))\b"
        r"|얼마|언제|몇|며칠|기간|금액|비율",
    ),
    (
        "entity",
        r"\b(?:who(?:se|m)?|where|which\s(?:company|person|country|city))\b|누구|누가|어디",
    ),
)
_INTENTS = tuple((intent, re.compile(form, re.I)) for intent, form in _FORMS)


def _intent(text: str) -> Intent:
    return next((intent for intent, form in _INTENTS if form.search(text)), "general")
