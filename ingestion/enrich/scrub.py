"""Finds personal data by form: e-mail addresses, phone, card and Korean resident numbers.

The form alone decides, so that the same text always gives the same result and no lookup is needed.
Names of persons are not found here; they are entities.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from callslip.ingestion.values import ExtractedText

MASK = "■"

_PLAIN = str.maketrans("０１２３４５６７８９－＋＠．‐‑‒–—", "0123456789-+@.-----")
_GAP = r"(?:[ \t]?[-.]\s?|\s)?"
_AT = re.compile(r"@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}")
_MAILBOX = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}\Z")
_RESIDENT = re.compile(rf"(?<!\d)(\d{{2}})(\d{{2}})(\d{{2}}){_GAP}([1-8])\d{{6}}(?!\d)")
_SPLIT = r"(?:[ \t]?-\s?|\s)"
_CARD = re.compile(  # tried at every digit: digits before it may be grouped the same way
    rf"(?<!\d)(?=((?:\d{{4}}{_SPLIT}){{3}}\d{{4}}(?:{_SPLIT}\d{{3}})?(?!\d)"
    rf"|\d{{4}}{_SPLIT}\d{{6}}{_SPLIT}\d{{4,5}}(?!\d)|\d{{13,19}}(?!\d)))"
)
_PHONES = (
    rf"(?:\+?82{_GAP}\(?0?\)?|\(?0)(?:1[016-9]|2|[3-6][1-5]|[5-8]0\d?)\)?{_GAP}\d{{3,4}}{_GAP}\d{{4}}",
    r"1[568]\d{2}[- ]\d{4}",
    r"\+(?!82)[1-9]\d{0,2}(?:[ .()/-]{0,2}\d){7,12}",
    r"(?:1[-. ])?\(?[2-9]\d{2}\)?[-. ]{1,2}[2-9]\d{2}[-. ]\d{4}",
    r"\(?0\d{2,4}\)?[ -]\d{3,4}[ -]?\d{3,4}",
)
_PHONE = re.compile(rf"(?<![\d.,+-])(?:{'|'.join(_PHONES)})(?!\d|-\d)")


def personal(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of personal data, in no order; spans may overlap."""
    text = text.translate(_PLAIN)
    for match in _AT.finditer(text):
        if mailbox := _MAILBOX.search(text[max(0, match.start() - 64) : match.start()]):
            yield match.start() - len(mailbox[0]), match.end()
    for match in _RESIDENT.finditer(text):
        if _is_birthday(match[4], match[1], match[2], match[3]):
            yield match.span()
    for match in _CARD.finditer(text):
        if _is_card(match[1]):
            yield match.span(1)
    for match in _PHONE.finditer(text):
        yield match.span()


def holds_personal(text: str) -> bool:
    """Whether the text contains personal data."""
    return next(personal(text), None) is not None


def masked(text: str) -> str:
    """Return the text with each character of personal data replaced, so that spans stay valid."""
    pieces, at = [], 0
    for start, end in sorted(personal(text)):
        pieces += [text[at:start], re.sub(r"\S", MASK, text[max(at, start) : end])]
        at = max(at, end)
    return "".join([*pieces, text[at:]])


def masked_extract(extracted: ExtractedText) -> ExtractedText:
    """Return the extracted text, title, properties and warnings without personal data."""
    return replace(
        extracted,
        text=masked(extracted.text),
        title=masked(extracted.title) if extracted.title else extracted.title,
        properties={name: masked(value) for name, value in extracted.properties.items()},
        warnings=tuple(map(masked, extracted.warnings)),
    )


def _is_birthday(century: str, year: str, month: str, day: str) -> bool:
    try:
        date((2000 if century in "3478" else 1900) + int(year), int(month), int(day))
    except ValueError:
        return False
    return True


def _is_card(digits: str) -> bool:
    """Check the Luhn digit (ISO/IEC 7812), and the issuer's first digit: 2 to 6."""
    numbers = [int(c) for c in digits if c.isdigit()]
    doubled = [sum(divmod(n * 2, 10)) for n in numbers[-2::-2]]
    return 2 <= numbers[0] <= 6 and (sum(doubled) + sum(numbers[::-2])) % 10 == 0
