"""Facets by rule: what a document's name and the beginning of its text give away."""

from collections.abc import Sequence

from stores.options import Rule

HEAD = 4000
"""Characters of a text that rules look at."""


def facets(rules: Sequence[Rule], name: str, text: str) -> dict[str, str]:
    """The facets that the rules set; of several rules for one facet the first that holds."""
    head = _plain(text[:HEAD])
    found: dict[str, str] = {}
    for rule in rules:
        named = rule.name is None or fits(_plain(rule.name), _plain(name))
        if named and (rule.content is None or fits(f"*{_plain(rule.content)}*", head)):
            found = {**rule.set, **found}
    return found


def fits(pattern: str, text: str) -> bool:
    """Whether the text is the pattern, `*` standing for any characters; in linear time."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    if not text.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return text.endswith(rest[-1]) and len(text) - len(rest[-1]) >= at


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
