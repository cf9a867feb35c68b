"""Filters in CrateDB's SQL, over the typed columns of properties."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from stores.atoms import TEXT, Atom, atom
from stores.crate.connection import Sql
from stores.filters import Condition, Where

Find = Callable[[str, str], str | None]
"""Where the values of a mark and a name are, in SQL; None where no chunk has any."""

NOTHING, EVERYTHING = Sql("FALSE"), Sql("TRUE")
"""Conditions that are never part of another one, nor of a statement: where CrateDB folds them, it
misses the values of the placeholders that went with them.
"""


def marks(where: Where) -> set[tuple[str, str]]:
    """The marks and names of all properties that a filter looks at."""
    return {(item.mark, condition.prop) for condition in where for item in _atoms(condition)}


def translate(where: Where, find: Find) -> Sql:
    """Write a filter as a condition; NOTHING or EVERYTHING where no column has a say in it."""
    parts = [_condition(condition, find) for condition in where.every]
    if where.some:
        parts.append(join("OR", [_condition(condition, find) for condition in where.some]))
    return join("AND", parts)


def _atoms(condition: Condition) -> list[Atom]:
    name, listed = condition.prop, condition.operator in ("@", "contains")
    if condition.operator == "~":
        return [Atom(TEXT, name, str(condition.value))]
    return [atom(name, value, listed=listed) for value in condition.values]


def _condition(condition: Condition, find: Find) -> Sql:
    items = _atoms(condition)
    match condition.operator:
        case "==" | "in":
            return join("OR", _by_type(items, find, "{0} = ANY(?)", NOTHING))
        case "!=" | "not-in":
            # Of a missing property SQL knows nothing, not even that it is not equal.
            unlike = "({0} IS NULL OR NOT ({0} = ANY(?)))"
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


def _on(item: Atom, find: Find, form: str, value: object, missing: Sql = NOTHING) -> Sql:
    column = find(item.mark, item.name)
    return Sql(form.format(column), (value,)) if column else missing


def _by_type(items: Iterable[Atom], find: Find, form: str, missing: Sql) -> list[Sql]:
    """One clause for each type of value."""
    clauses = []
    for (mark, name), group in groupby(sorted(items), key=lambda item: (item.mark, item.name)):
        column = find(mark, name)
        values = [item.value for item in group]
        clauses.append(Sql(form.format(column), (values,)) if column else missing)
    return clauses


def pattern(condition: Condition) -> str:
    """Write `*` as LIKE's `%`, and what LIKE would take for a wild card as itself."""
    text = str(condition.value)
    for sign in "\\%_":
        text = text.replace(sign, f"\\{sign}")
    return text.replace("*", "%")


def join(operator: str, parts: Sequence[Sql]) -> Sql:
    """One condition of several; NOTHING and EVERYTHING are worked out here."""
    decides, drops = (NOTHING, EVERYTHING) if operator == "AND" else (EVERYTHING, NOTHING)
    if decides in parts:
        return decides
    kept = [part for part in parts if part != drops]
    if not kept:
        return drops
    text = f" {operator} ".join(part.text for part in kept)
    return Sql(f"({text})", tuple(value for part in kept for value in part.args))
