"""What makes two English statements with the same words differ: opposites, and measures."""

import re

from callslip.languages.measures import measures


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{text})\b", re.I)


OPPOSITES = tuple(
    (_pattern(one), _pattern(other))
    for one, other in (
        (r"before|ahead|prior|in\sadvance", r"after|afterwards|later"),
        (r"at\smost|no\smore\sthan|up\sto|maximum|capped", r"at\sleast|no\sless\sthan|minimum"),
        (r"no\searlier\sthan|at\smost", r"no\slater\sthan|at\sleast"),
        (r"open(?:ed|s)?", r"closed?|shut"),
        (r"rises?|increases?|higher|more", r"falls?|decreases?|lower|less"),
        (r"nobody|no\sone|nothing|none", r"everybody|everyone|everything|somebody|someone"),
        (r"inside|indoors?", r"outside|outdoors?"),
        (r"unpaid", r"paid"),
        (r"accept(?:s|ed)?|approved?", r"reject(?:s|ed)?|refused?"),
        (r"compulsory|mandatory|must|required", r"voluntary|optional|(?-i:may)|can"),
        (r"over|above|older\sthan", r"under|below|younger\sthan"),
        (r"within", r"after"),
        (r"mothers?", r"fathers?"),
    )
)

MEASURES = measures(
    {
        **{"usd": r"dollars?", "eur": r"euros?", "krw": r"won\b", "jpy": r"yen\b"},
        **{"gbp_lb": r"pounds?", "gbp": r"pence|sterling"},
        **{"am": r"a\.?\s?m\b|in\sthe\smorning|midnight", "night": r"at\snight"},
        "pm": r"p\.?\s?m\b|in\sthe\s(?:afternoon|evening)|noon",
        **{"kg": r"kilo(?:gram(?:me)?)?s?\b", "g": r"gram(?:me)?s?\b"},
        **{"km": r"kilomet(?:er|re)s?", "m": r"met(?:er|re)s?", "mile": r"miles?"},
        **{"points": r"percentage\spoints?|%\s?points?", "percent": r"%|percent\b|per\scent\b"},
    }
)
