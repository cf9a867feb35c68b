"""Sets facets by rules on a document's name and the beginning of its text."""

from collections.abc import Sequence

from callslip.messages.options import Rule

HEAD = 4000
"""The number of characters at the beginning of a text that rules examine."""


def facets(rules: Sequence[Rule], name: str, text: str) -> dict[str, str]:
    """Return the facets that the rules set; of several rules for one facet, the first counts."""
    head = _plain(text[:HEAD])
    values: dict[str, str] = {}
    for rule in rules:
        named = rule.name is None or fits(_plain(rule.name), _plain(name))
        if named and (rule.content is None or fits(f"*{_plain(rule.content)}*", head)):
            values = {**rule.set, **values}
    return values


def fits(pattern: str, text: str) -> bool:
    """Whether the text matches the pattern, in which `*` is any characters; in linear time."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    if not text.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        values = text.find(part, at)
        if values < 0:
            return False
        at = values + len(part)
    return text.endswith(rest[-1]) and len(text) - len(rest[-1]) >= at


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
