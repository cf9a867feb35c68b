"""What texts state with a number beyond its dimension: currency, half of the day, unit."""

import re
from collections.abc import Callable, Mapping

from callslip.languages.contract import Amount

_SYMBOLS = {
    **{"usd": r"US\$|\$|USD\b", "eur": r"€|EUR\b", "gbp": r"£|GBP\b", "krw": r"₩|KRW\b"},
    "jpy": r"¥|JPY\b",
}
_UNITS = {
    **{"kg": r"kg", "g": r"g", "mg": r"mg", "km": r"km", "m": r"m", "cm": r"cm", "mm": r"mm"},
    **{"l": r"l|L", "ml": r"m[lL]", "lb": r"lbs?", "celsius": r"°\s?C|℃", "fahrenheit": r"°\s?F|℉"},
}
_BEFORE, _BEHIND = 6, 20
"""The maximum numbers of characters before and behind an amount in which its measure stands."""

_HALVES = ("am", "pm", "night")


def measures(
    words: Mapping[str, str], before: Mapping[str, str] | None = None
) -> Callable[[str, Amount], frozenset[str]]:
    """Return a function of a text and an amount in it that returns the amount's measures.

    `words` maps names of measures to patterns of words behind a number, `before` to those before
    it. A name such as `gbp_lb` stands for either measure. Names of halves of a day are `am`, `pm`
    and `night`.
    """
    symbols = [
        f"(?P<{name}>{pattern})" for name, pattern in (_SYMBOLS | dict(before or {})).items()
    ]
    ahead = re.compile(rf"(?<![A-Za-z])(?:{'|'.join(symbols)})\s?\Z")
    named = [f"(?P<{name}>{pattern})" for name, pattern in words.items()]
    units = [
        f"(?P<unit_{name}>(?:{pattern})(?![A-Za-z]))"
        for name, pattern in (_SYMBOLS | _UNITS).items()
    ]
    behind = re.compile(rf"(?<![A-Za-z.])(?:{'|'.join((*named, *units))})", re.I)

    def of(text: str, amount: Amount) -> frozenset[str]:
        start = amount.start
        while start < amount.end and text[start] in "€$£₩¥ ":
            start += 1
        match = ahead.search(text[max(0, start - _BEFORE) : start])
        if match is None:
            match = behind.search(text, start, amount.end + _BEHIND)
            match = match if match and match.start() <= amount.end + 1 else None
        names = (match.lastgroup or "").removeprefix("unit_").split("_") if match else []
        if amount.dimension == "clock":
            return _half(amount.number, names)
        return frozenset(names) - {*_HALVES}

    return of


def _half(hour: float, names: list[str]) -> frozenset[str]:
    """Return the half of the day of an hour: 12 at night is `am`."""
    if "night" in names:
        return frozenset(("am" if hour == 12 or hour < 6 else "pm",))
    if hour > 12:
        return frozenset(("pm" if hour < 24 else "am",))
    return frozenset(names) & {*_HALVES} or frozenset(() if hour else ("am",))
