"""Filters over the columns of another program's table, by the types of these columns."""

from datetime import datetime, timedelta

from callslip.errors import InvalidFilter
from callslip.stores.crate.attached.fields import (
    CONSTANT,
    FLAGS,
    INTEGERS,
    NUMBERS,
    TEXTS,
    TIMES,
    Field,
    Fields,
)
from callslip.stores.crate.connection import Sql
from callslip.stores.crate.filters import EVERYTHING, NOTHING, join, pattern
from callslip.stores.properties.filters import COMPLEMENTS, Comparable, Condition, Where, matches
from callslip.stores.properties.terms import EPOCH

_DAY = "____-__-__%"
"""The LIKE pattern of a text that is a date."""


def translate(where: Where, fields: Fields) -> Sql:
    """Translate a filter; NOTHING or EVERYTHING if the result does not depend on a column.

    Raises InvalidFilter for a property of a type that filters cannot compare.
    """
    parts = [_condition(condition, fields) for condition in where.every]
    if where.some:
        parts.append(join("OR", [_condition(condition, fields) for condition in where.some]))
    return join("AND", parts)


def _condition(condition: Condition, fields: Fields) -> Sql:
    name = condition.prop
    if name in CONSTANT:
        return EVERYTHING if matches(Where((condition,)), CONSTANT) else NOTHING
    if positive := COMPLEMENTS.get(condition.operator):
        return _complement(_condition(Condition(name, positive, condition.value), fields))
    field = fields.get(name)
    if field is None:
        return NOTHING
    if field.member not in NUMBERS | TEXTS | TIMES | FLAGS:
        raise InvalidFilter(f"{name!r} is of the type {field.type}, which filters do not compare.")
    listed = condition.operator in ("@", "contains")
    if listed != field.listed:
        return NOTHING
    if listed:
        return join("OR", [_contains(field, value) for value in condition.values])
    match condition.operator:
        case "==" | "in":
            return join("OR", [_compared(field, "=", value) for value in condition.values])
        case "~":
            like = Sql(f"{field.sql} LIKE ?", (pattern(condition),))
            return like if field.type in TEXTS else NOTHING
        case operator:
            return _compared(field, operator, condition.values[0])


def _complement(sql: Sql) -> Sql:
    """The exact complement. In SQL, a comparison with a missing value is NULL, even `!=`."""
    if sql in (NOTHING, EVERYTHING):
        return EVERYTHING if sql == NOTHING else NOTHING
    return Sql(f"NOT COALESCE({sql.text}, FALSE)", sql.args)


def _compared(field: Field, operator: str, value: Comparable) -> Sql:
    if isinstance(value, datetime):
        return _at_time(field, operator, value)
    if not _fits(field, value):
        return NOTHING
    column = field.sql
    if field.type in INTEGERS and isinstance(value, float):
        if value.is_integer():
            value = int(value)
        elif operator == "=":
            return NOTHING
        else:  # CrateDB would truncate the value, not convert the column
            column = f"CAST({column} AS DOUBLE PRECISION)"
    return Sql(f"{column} {operator} ?", (value,))


def _at_time(field: Field, operator: str, value: datetime) -> Sql:
    moment = (value - EPOCH) / timedelta(milliseconds=1)
    if field.type in TIMES:
        return Sql(f"{field.sql} {operator} ?", (round(moment),))
    if field.type not in TEXTS:
        return NOTHING
    read = f"TRY_CAST({field.sql} AS TIMESTAMP WITH TIME ZONE)"
    return Sql(f"({field.sql} LIKE ? AND {read} {operator} ?)", (_DAY, round(moment)))


def _contains(field: Field, value: Comparable) -> Sql:
    """The condition that a list has this member; a date in a list of texts is compared as text."""
    if isinstance(value, datetime):
        moment = round((value - EPOCH) / timedelta(milliseconds=1))
        if field.member in TIMES:
            return Sql(f"? = ANY({field.sql})", (moment,))
        spelled = value.isoformat().replace("+00:00", "Z")
        forms = [spelled, spelled[:10]] if "T00:00:00Z" in spelled else [spelled]
        parts = [Sql(f"? = ANY({field.sql})", (form,)) for form in forms]
        return join("OR", parts) if field.member in TEXTS else NOTHING
    if not _fits(field, value):
        return NOTHING
    if field.member in INTEGERS and isinstance(value, float):
        return Sql(f"? = ANY({field.sql})", (int(value),)) if value.is_integer() else NOTHING
    return Sql(f"? = ANY({field.sql})", (value,))


def _fits(field: Field, value: Comparable) -> bool:
    if isinstance(value, bool):
        return field.member in FLAGS
    return field.member in (TEXTS if isinstance(value, str) else NUMBERS)
