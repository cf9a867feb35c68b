"""Filters in CrateDB's SQL, over the typed columns of properties."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from callslip.stores.crate.columns import KINDS
from callslip.stores.crate.connection import Sql
from callslip.stores.properties.filters import Condition, Where
from callslip.stores.properties.terms import TEXT, PropertyTerm, property_term

Find = Callable[[str, str], str | None]
"""Returns the SQL expression of the values of a mark and a name; None if no chunk has any."""

NOTHING, EVERYTHING = Sql("FALSE"), Sql("TRUE")
"""Conditions that are never part of another condition or of a statement: if CrateDB folds them, it
misses the values of the placeholders that it removes with them.
"""


def marks(where: Where) -> set[tuple[str, str]]:
    """The marks and names of all properties in a filter."""
    return {
        (item.mark, condition.prop) for condition in where for item in _property_terms(condition)
    }


def translate(where: Where, find: Find) -> Sql:
    """Translate a filter; NOTHING or EVERYTHING if the result does not depend on a column."""
    parts = [_condition(condition, find) for condition in where.every]
    if where.some:
        parts.append(join("OR", [_condition(condition, find) for condition in where.some]))
    return join("AND", parts)


def _property_terms(condition: Condition) -> list[PropertyTerm]:
    name, listed = condition.prop, condition.operator in ("@", "contains")
    if condition.operator == "~":
        return [PropertyTerm(TEXT, name, str(condition.value))]
    return [property_term(name, value, listed=listed) for value in condition.values]


def _condition(condition: Condition, find: Find) -> Sql:
    items = _property_terms(condition)
    match condition.operator:
        case "==" | "in":
            return join("OR", _by_type(items, find, "{0} = ANY({1})", NOTHING))
        case "!=" | "not-in":
            # In SQL, a comparison with a missing property is NULL, even `!=`.
            unlike = "({0} IS NULL OR NOT ({0} = ANY({1})))"
            return join("AND", _by_type(items, find, unlike, EVERYTHING))
        case "@" | "contains":
            return join("OR", [_on(item, find, "? = ANY({0})", item.value) for item in items])
        case "~":
            return _on(items[0], find, "{0} LIKE ?", pattern(condition))
        case "!>" | "!>=" | "!<" | "!<=":
            unlike = f"({{0}} IS NULL OR NOT ({{0}} {condition.operator[1:]} ?))"
            return _on(items[0], find, unlike, items[0].value, EVERYTHING)
        case operator:
            return _on(items[0], find, f"{{0}} {operator} ?", items[0].value)


def _on(item: PropertyTerm, find: Find, form: str, value: object, missing: Sql = NOTHING) -> Sql:
    column = find(item.mark, item.name)
    return Sql(form.format(column), (value,)) if column else missing


def _by_type(items: Iterable[PropertyTerm], find: Find, form: str, missing: Sql) -> list[Sql]:
    """One clause for each type of value.

    The list of values is cast to its type: compared with a column of unknown type, which is what
    names beyond the columns of a table have, a list without a cast finds nothing in CrateDB 6.3.
    """
    clauses = []
    for (mark, name), group in groupby(sorted(items), key=lambda item: (item.mark, item.name)):
        column = find(mark, name)
        values = [item.value for item in group]
        listed = f"?::{KINDS[mark.upper()][1]}"
        clauses.append(Sql(form.format(column, listed), (values,)) if column else missing)
    return clauses


def pattern(condition: Condition) -> str:
    """Translate a pattern for LIKE: `*` becomes `%`, and LIKE's own wildcards are escaped."""
    text = str(condition.value)
    for sign in "\\%_":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("*", "%")


def join(operator: str, parts: Sequence[Sql]) -> Sql:
    """Join conditions by AND or OR; NOTHING and EVERYTHING are evaluated here."""
    decides, drops = (NOTHING, EVERYTHING) if operator == "AND" else (EVERYTHING, NOTHING)
    if decides in parts:
        return decides
    remaining = [part for part in parts if part != drops]
    if not remaining:
        return drops
    text = f" {operator} ".join(part.text for part in remaining)
    return Sql(f"({text})", tuple(value for part in remaining for value in part.args))
