"""Date patterns that all languages share; `BEGIN` and `END` limit the text around a year."""

import re

YEAR = r"(?P<year>(?:19|20)\d\d)"
BEGIN = r"(?<![\w.,:/$€£₩#'’-])"
END = r"(?![\w%:/]|[.,]\d|[-–](?:\d{1,3}(?!\d)|[^\W\d])|['’]s)"

DAYS = (
    r"(?P<year>\d{4}|['’]\d{2})(?P<dot>\s?\.\s?|[-/])(?P<month_no>\d{1,2})(?P=dot)"
    r"(?P<day>\d{1,2})(?!\d)",
)
"""Complete dates: ISO 8601, and the same order with dots or slashes."""

PERIODS = tuple(
    re.compile(form, re.I)
    for form in (
        rf"{BEGIN}(?P<bare>){YEAR}[-./](?P<month_no>1[0-2]|0?[1-9])(?:\.(?!\d))?(?![\w/-]|\.\d)",
        rf"{BEGIN}(?P<bare>){YEAR}{END}",
        rf"(?P<bare>)(?<=\d[-–]){YEAR}{END}",
    )
)
"""Months and years in digits alone. The group `bare` marks them, because they may be other numbers.
"""


def month_pattern(months: tuple[str, ...]) -> str:
    """Return a pattern with the group `month` that matches any of the twelve names."""
    return rf"(?P<month>{'|'.join(months)})\.?"
