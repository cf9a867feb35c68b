"""Filters as Tantivy queries; each property term is one raw term of the field `props`."""

import re
import struct
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import tantivy

from callslip.errors import InvalidFilter
from callslip.stores.levels import DOCUMENT, PASSAGES, SECTION
from callslip.stores.properties.filters import COMPLEMENTS, Condition, Where
from callslip.stores.properties.terms import DATE, FLAG, NUMBER, TEXT, PropertyTerm, property_term

ID, TERMS, PROPS = "chunk_id", "terms", "props"


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(ID, stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(TERMS, tokenizer_name="whitespace", index_option="freq")
    builder.add_text_field(PROPS, tokenizer_name="raw", index_option="basic")
    return builder.build()


SCHEMA = _schema()

Clause = tuple[tantivy.Occur, tantivy.Query]
"""A part of a query, and whether it must, should or must not match."""

_HEX = "0123456789abcdef"
_WIDTH = 16


def term(item: PropertyTerm) -> str:
    """A property term as a raw term of the index, with the length of the name before the name."""
    return prefix(item.mark, item.name) + _encode(item)


def prefix(mark: str, name: str) -> str:
    """The common prefix of the terms of all values of a property with this mark."""
    return f"{mark}{len(name)}:{name}:"


def decode(mark: str, text: str) -> str | float | bool:
    """Decode the value of a term without its prefix. Dates are decoded from their text terms."""
    if mark.lower() == NUMBER:
        bits = int(text, 16)
        bits = bits ^ (1 << 63) if bits >> 63 else bits ^ ((1 << 64) - 1)
        number: float = struct.unpack(">d", bits.to_bytes(8, "big"))[0]
        return int(number) if number.is_integer() else number
    return text == "1" if mark.lower() == FLAG else text


def filter_query(where: Where) -> tantivy.Query:
    """Translate a filter into a query that matches the same chunks and adds 0 to their score.

    Raises InvalidFilter for a pattern that is too long to compile.
    """
    parts = [_condition(condition) for condition in where.every]
    if where.some:
        parts.append(_any([_condition(condition) for condition in where.some]))
    return tantivy.Query.const_score_query(_all(parts), 0.0)


def _of_level(level: int) -> tantivy.Query:
    return tantivy.Query.term_query(SCHEMA, PROPS, term(property_term("level", level)), "basic")


def narrowed(clauses: Sequence[Clause], where: Where | None) -> tantivy.Query:
    """Make a query for the chunks that match the clauses and pass a filter.

    PASSAGES excludes the chunks of the other levels, which are few. So Tantivy does not list the
    many that pass, and leaves out those whose score cannot be among the best, as without a filter.
    """
    if where is None:
        return tantivy.Query.boolean_query(clauses)
    others = tuple(condition for condition in where.every if condition != PASSAGES)
    excluded: list[Clause] = []
    if len(others) < len(where.every):
        excluded = [(tantivy.Occur.MustNot, _of_level(level)) for level in (DOCUMENT, SECTION)]
    if not others and not where.some:
        return tantivy.Query.boolean_query([*clauses, *excluded])
    parts = (tantivy.Query.boolean_query(clauses), filter_query(Where(others, where.some)))
    return tantivy.Query.boolean_query([*((tantivy.Occur.Must, part) for part in parts), *excluded])


def _condition(condition: Condition) -> tantivy.Query:
    name = condition.prop
    if positive := COMPLEMENTS.get(condition.operator):
        return _not(_condition(replace(condition, operator=positive)))
    match condition.operator:
        case "==" | "in":
            return _one_of([property_term(name, value) for value in condition.values])
        case "@" | "contains":
            return _one_of([property_term(name, value, listed=True) for value in condition.values])
        case "~":
            parts = str(condition.value).split("*")
            pattern = "(?s:.*)".join(_escape(part) for part in _collapsed(parts))
            return _regex(condition, prefix(TEXT, name), pattern)
        case _:
            bound = property_term(name, condition.values[0])
            pattern = _range(condition.operator, _encode(bound))
            return _regex(condition, prefix(bound.mark, name), pattern)


def _one_of(items: Sequence[PropertyTerm]) -> tantivy.Query:
    return tantivy.Query.term_set_query(SCHEMA, PROPS, [term(item) for item in items])


def _not(query: tantivy.Query) -> tantivy.Query:
    everything = tantivy.Query.all_query()
    return tantivy.Query.boolean_query(
        [(tantivy.Occur.Must, everything), (tantivy.Occur.MustNot, query)]
    )


def _all(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Must, query) for query in queries])


def _any(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])


def _regex(condition: Condition, start: str, pattern: str) -> tantivy.Query:
    try:
        return _compiled(_escape(start) + pattern)
    except ValueError:
        raise InvalidFilter(
            f"The pattern for {condition.prop!r} is too long.", hint="Use fewer `*` or less text."
        ) from None


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> tantivy.Query:
    """Cached: compiling a pattern takes 0.8 ms, and every search filters by level."""
    return tantivy.Query.regex_query(SCHEMA, PROPS, pattern)


def _range(operator: str, bound: str) -> str:
    """The pattern of all fixed-width hexadecimal numbers above or below the bound.

    Tantivy does not compare text. A number is greater than the bound exactly if both share the
    first i digits and the number's next digit is greater: one alternative for each i.
    """
    alternatives = [bound] if operator.endswith("=") else []
    for i, digit in enumerate(bound):
        at = _HEX.index(digit)
        others = _HEX[at + 1 :] if operator.startswith(">") else _HEX[:at]
        if others:
            alternatives.append(f"{bound[:i]}[{others}][{_HEX}]{{{_WIDTH - i - 1}}}")
    return f"({'|'.join(alternatives)})"


def _encode(item: PropertyTerm) -> str:
    """Encode a value so that terms with the same mark have the order of their values."""
    mark, value = item.mark.lower(), item.value
    if mark == NUMBER:
        bits = int.from_bytes(struct.pack(">d", value), "big")
        bits = bits ^ ((1 << 64) - 1) if bits >> 63 else bits | (1 << 63)
        return f"{bits:0{_WIDTH}x}"
    if mark == DATE:
        return f"{int(value) + (1 << 63):0{_WIDTH}x}"
    return str(int(value)) if mark == FLAG else str(value)


def _collapsed(parts: Sequence[str]) -> list[str]:
    """Drop the empty parts between adjacent wildcards."""
    inner = [part for part in parts[1:-1] if part]
    return [parts[0], *inner, parts[-1]] if len(parts) > 1 else list(parts)


_META = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~]")


def _escape(text: str) -> str:
    return _META.sub(r"\\\g<0>", text)
