"""Formulas of Office (OMML, ISO/IEC 29500-1, 22.1) as linear text: `(a+b)/c`, `sqrt(x)`, `x_i^2`.

Words stand for signs that nobody types in a search: `sum_(i=1)^n i`, `int_0^1 f(x)`, `vec(v)`.
"""

import re
import unicodedata

from lxml import etree

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
FORMULA = f"{MATH}oMath"
_VALUE = f"{MATH}val"

_OPERATORS = {
    "∑": "sum", "∏": "prod", "∐": "coprod", "∫": "int", "∬": "iint", "∭": "iiint", "∮": "oint",
    "⋃": "union", "⋂": "intersection", "⋁": "or", "⋀": "and",
}  # fmt: skip
_ACCENTS = {
    "\u0302": "hat", "\u0303": "tilde", "\u0304": "bar", "\u0305": "bar", "\u0307": "dot",
    "\u0308": "ddot", "\u20d7": "vec", "\u030c": "check", "\u0306": "breve",
}  # fmt: skip
_SINGLE = re.compile(r"\w[\w.,]*\Z|[^\w\s]\Z")
"""A number, a name or a sign: needs no parentheses."""

_STYLED = re.compile("[\U0001d400-\U0001d7ff\u2100-\u214f]+")
"""Letters in mathematical italics and the like, which nobody types."""


def linear(element: etree._Element) -> str:
    """Return a formula, or a part of one, as a line of text."""
    name = etree.QName(element).localname if isinstance(element.tag, str) else ""
    if not name.endswith("Pr") and element.tag == f"{MATH}{name}":
        special = _LINEAR.get(name)
        return special(element) if special else _children(element)
    # Runs of text, insertions and the like may lie between parts of a formula.
    return "" if name in ("rPr", "del", "moveFrom") else _children(element)


def _children(element: etree._Element) -> str:
    return "".join(linear(child) for child in element)


def _part(element: etree._Element, name: str) -> str:
    part = element.find(f"{MATH}{name}")
    return "" if part is None else _children(part).strip()


def _grouped(text: str) -> str:
    """Return the text in parentheses, unless it is one number, one name or one sign."""
    return text if _SINGLE.match(text) or _enclosed(text) else f"({text})"


def _enclosed(text: str) -> bool:
    """Whether one pair of parentheses encloses the whole text."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for at, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if not depth:
            return at == len(text) - 1
    return False


def _property(element: etree._Element, name: str, usual: str) -> str:
    """Return a property; `usual` if it is not there, and an empty text if it has no value."""
    value = element.find(f"{MATH}{etree.QName(element).localname}Pr/{MATH}{name}")
    return usual if value is None else value.get(_VALUE, "")


def _run(element: etree._Element) -> str:
    text = "".join(part.text or "" for part in element.iter(f"{MATH}t"))
    return _STYLED.sub(lambda letters: unicodedata.normalize("NFKC", letters[0]), text)


def _fraction(element: etree._Element) -> str:
    above, below = _part(element, "num"), _part(element, "den")
    if _property(element, "type", "bar") == "noBar":
        return f"binom({above}, {below})"
    return f"{_grouped(above)}/{_grouped(below)}"


def _scripts(element: etree._Element) -> str:
    """Return a base with what is below and above it."""
    return _grouped(_part(element, "e")) + _limits(_part(element, "sub"), _part(element, "sup"))


def _limits(below: str, above: str) -> str:
    return (f"_{_grouped(below)}" if below else "") + (f"^{_grouped(above)}" if above else "")


def _before(element: etree._Element) -> str:
    return _limits(_part(element, "sub"), _part(element, "sup")) + _grouped(_part(element, "e"))


def _root(element: etree._Element) -> str:
    degree, inside = _part(element, "deg"), _part(element, "e")
    return f"root({degree}, {inside})" if degree else f"sqrt({inside})"


def _operator(element: etree._Element) -> str:
    sign = _property(element, "chr", "∫")
    limits = _limits(_part(element, "sub"), _part(element, "sup"))
    return f"{_OPERATORS.get(sign, sign)}{limits} {_part(element, 'e')}"


def _delimited(element: etree._Element) -> str:
    opening, closing = _property(element, "begChr", "("), _property(element, "endChr", ")")
    parts = element.findall(f"{MATH}e")
    matrix = parts[0].find(f"{MATH}m") if len(parts) == 1 and len(parts[0]) == 1 else None
    if matrix is not None:
        return f"{opening}{_rows(matrix)}{closing}"
    separator = _property(element, "sepChr", "|")
    return opening + separator.join(_children(part) for part in parts) + closing


def _function(element: etree._Element) -> str:
    argument = _part(element, "e")
    return _part(element, "fName") + (argument if _enclosed(argument) else f"({argument})")


def _limit_below(element: etree._Element) -> str:
    return _part(element, "e") + _limits(_part(element, "lim"), "")


def _limit_above(element: etree._Element) -> str:
    return _part(element, "e") + _limits("", _part(element, "lim"))


def _accent(element: etree._Element) -> str:
    sign = _property(element, "chr", "\u0302")
    inside = _part(element, "e")
    return f"{_ACCENTS[sign]}({inside})" if sign in _ACCENTS else inside + sign


def _bar(element: etree._Element) -> str:
    name = "bar" if _property(element, "pos", "bot") == "top" else "underline"
    return f"{name}({_part(element, 'e')})"


def _matrix(element: etree._Element) -> str:
    return f"[{_rows(element)}]"


def _rows(element: etree._Element) -> str:
    rows = element.findall(f"{MATH}mr")
    return "; ".join(
        ", ".join(_children(cell).strip() for cell in row.findall(f"{MATH}e")) for row in rows
    )


def _equations(element: etree._Element) -> str:
    return "; ".join(_children(part).strip() for part in element.findall(f"{MATH}e"))


_LINEAR = {
    "r": _run, "f": _fraction, "sSub": _scripts, "sSup": _scripts, "sSubSup": _scripts,
    "sPre": _before, "rad": _root, "nary": _operator, "d": _delimited, "func": _function,
    "limLow": _limit_below, "limUpp": _limit_above, "acc": _accent, "bar": _bar, "m": _matrix,
    "eqArr": _equations,
}  # fmt: skip
