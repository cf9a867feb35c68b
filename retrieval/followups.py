"""A question that leans on earlier ones, made to stand by itself, by rules.

`And for twins?` after `How long is leave?` becomes `How long is leave for twins?`;
`Who approves it?` gets the topic of what came before. What stands by itself stays as it is.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

MOST_WORDS = 5
"""Of a question that may be a fragment: a preposition and what it is about."""

MOST_TAILS = 3
"""What later questions put in the place of a part of it, the newest."""

MOST_TOPIC = 12
"""Words of an earlier question that a later one points to, the last ones: they are the oldest."""

_LEAD = re.compile(
    r"^(?:(?:and|but|or|so|also|then|ok(?:ay)?|well|what\s+about|how\s+about|what\s+of|what\s+if"
    r"|그럼|그러면|그리고|그런데|근데|그래서|그렇다면|또한|또|하지만|그러나|혹시|만약|만일|아니면)(?=[\s,?]|$)[\s,]*)+",
    re.IGNORECASE,
)
_PREPOSITION = re.compile(
    r"(?!\w+\s+(?:what|which|who|whom|whose|when|how)\b)"
    r"(?:for|in|at|with|without|on|by|after|before|as\s+of|during|from|until|under|to|of|if)\b",
    re.IGNORECASE,
)
_POINTS = re.compile(
    r"\b(?:(?-i:it|It)|its|they|them|their|theirs|he|she|his|her|him)\b"
    r"|^(?:(?:is|are|was|were|do|does|did|can|will|has|have)\s+)?(?:this|that|these|those)\b"
    r"|\b(?:this|that|these|those|there|then|the\s+same)\s*[?.!]*$"
    r"|\b(?:this|that|these|those)\s+(?:apply|mean|include|cost|last|work|start|end|cover|hold)\b"
    r"|(?:^|\s)(?:그것|이것|그거|이거|거기|그때|이때|그\s?경우|이\s?경우|그\s?사람|(?:그|해당)\s(?=\S))",
    re.IGNORECASE,
)
_POINTS_WITHIN = re.compile(
    r"\bit\s+(?:possible|allowed|permitted|required|necessary|mandatory|legal|true|ok(?:ay)?)\b"
    r"|\bit\s+(?:take|cost)\b(?=.{0,80}\bto\b)"
    r"|\b(?:an?|any|every|each)\s+\w+\b(?!\s+(?:of|for|to|in|on)\b)"
    r".{0,80}?\b(?:his|her|its|their|they|(?:when|if|before|after|once|while)\s+it)\b"
    r"|\b(?:do|are|can|must|may|should|will|if|how\s+many)\s+(?!they\b|its\b|his\b)(?:\w+\s+){0,2}"
    r"\w{2,}s\b.{0,80}?\b(?:they|their|them)\b",
    re.IGNORECASE,
)
"""What points to nothing, or to a word of the same question: `can a tenant paint their flat?`."""
_KOREAN_FRAGMENT = re.compile(
    r"^(?:\S+\s+){0,2}(?!\S*(?:제도|정도|속도|온도|한도|연도|년도|용도|빈도|각도|지도|별도)\b)"
    r"\S*?(은|는|도|이면|라면|엔|에는|의\s?경우)(?:요)?[?.!\s]*$"
)
_ALIKE = {"은": "는", "이면": "라면", "엔": "에는"}
"""The same particle behind another sound."""

_ASKING = re.compile(
    r"\b(?:how|what|which|who(?:m|se)?|when|where|why|is|are|was|were|am|be|been|do|does|did|can|could"
    r"|will|would|shall|should|may|might|must|has|have|had|the|an?|i|we|you|my|our|your|me|us|there"
    r"|long|much|many|often|please|tell|about|get|it|its|they|them|this|that|these|those)\b|'s\b"
    r"|(?:얼마나|얼마|무엇|뭐|언제|어디|어떻게|어떤|누가|누구|몇|왜|알려|주세요|말해)\S*"
    r"|\s(?:되|하|인|있|없|받)\S{0,3}(?:나요|가요|니까|까요)|[?!.,]",
    re.IGNORECASE,
)


class Standing(NamedTuple):
    """A question that stands by itself: `base`, and what later questions put in its place."""

    base: str
    tails: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All of it as one question."""
        if not self.tails:
            return self.base
        return f"{self.base.rstrip(' ?.!')} {' '.join(self.tails)}?"


def stand(question: str, before: Sequence[Standing]) -> Standing:
    """The question, understood by the ones before it, oldest first."""
    text = " ".join(question.split())
    if not before:
        return Standing(text)
    last, rest = before[-1], _LEAD.sub("", text)
    bare = rest.rstrip(" ?.!")
    if bare and _is_fragment(rest, led=rest != text):
        kind = _kind(bare)
        kept = tuple(tail for tail in last.tails if kind is None or _kind(tail) != kind)
        return Standing(last.base, (*kept, bare)[-MOST_TAILS:])
    pointing = _POINTS.search(_POINTS_WITHIN.sub(" ", text))
    if pointing and (topic := " ".join(_topic(last.text).split()[-MOST_TOPIC:])):
        return Standing(f"{text.rstrip(' ?.!')} {topic}?")
    return Standing(text)


def _is_fragment(rest: str, *, led: bool) -> bool:
    if len(rest.split()) > MOST_WORDS:
        return False
    if _PREPOSITION.match(rest) or _KOREAN_FRAGMENT.match(rest) or not _topic(rest):
        return True
    return led and not _asks_itself(rest)


def _asks_itself(text: str) -> bool:
    """Whether it has a verb or a question word of its own."""
    return bool(
        re.match(
            r"(?:how|what|which|who|when|where|why|is|are|was|were|do|does|did|can|could|will|would"
            r"|shall|should|may|must|has|have)\b",
            text,
            re.IGNORECASE,
        )
        or re.search(r"(?:나요|가요|니까|까요|습니다|얼마|언제|어디|무엇|누구|어떻게)", text)
    )


def _kind(tail: str) -> str | None:
    """By what a fragment is joined: one by the same takes its place."""
    if found := _PREPOSITION.match(tail):
        return found[0].casefold()
    found = _KOREAN_FRAGMENT.match(tail)
    return _ALIKE.get(found[1], found[1]) if found else None


def _topic(text: str) -> str:
    return " ".join(_ASKING.sub(" ", text).split())
