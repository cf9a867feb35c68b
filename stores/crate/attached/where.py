"""Filters over the columns of a table of somebody else, by the types that it gave them."""

from datetime import datetime, timedelta

from callslip.errors import InvalidFilter
from stores.atoms import EPOCH
from stores.crate.attached.fields import (
    CONSTANT,
    FLAGS,
    INTEGERS,
    NUMBERS,
    TEXTS,
    TIMES,
    Field,
    Fields,
)
from stores.crate.connection import Sql
from stores.crate.where import EVERYTHING, NOTHING, join, pattern
from stores.filters import COMPLEMENTS, Comparable, Condition, Where, matches

_DAY = "____-__-__%"
"""What a text looks like that is a date."""


def translate(where: Where, fields: Fields) -> Sql:
    """Write a filter as a condition; NOTHING or EVERYTHING where no column has a say in it.

    InvalidFilter for a property of a type that filters cannot compare.
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
        return join("OR", [_held(field, value) for value in condition.values])
    match condition.operator:
        case "==" | "in":
            return join("OR", [_compared(field, "=", value) for value in condition.values])
        case "~":
            like = Sql(f"{field.sql} LIKE ?", (pattern(condition),))
            return like if field.type in TEXTS else NOTHING
        case operator:
            return _compared(field, operator, condition.values[0])


def _complement(sql: Sql) -> Sql:
    """Of a missing value SQL knows nothing, not even that it is not equal."""
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
        else:  # CrateDB would cut the value, not the column
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


def _held(field: Field, value: Comparable) -> Sql:
    """That a list has this member; a date in a list of texts is looked for as it is spelled."""
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
