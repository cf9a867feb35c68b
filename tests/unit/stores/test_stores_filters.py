"""What a filter's keys and values mean."""

import math
from datetime import UTC, datetime

import pytest

from callslip.errors import InvalidFilter
from callslip.stores.properties.filters import (
    MAX_VALUES,
    Condition,
    Where,
    instant,
    matches,
    normalize,
    parse,
)


def only(key: str, value: object) -> Condition:
    where = parse({key: value}, None)
    assert where is not None
    (condition,) = where.every
    return condition


def holds(key: str, value: object, properties: dict[str, object]) -> bool:
    where = parse({key: value}, None)
    assert where is not None
    return matches(where, properties)


@pytest.mark.parametrize(
    ("key", "value", "prop", "operator"),
    [
        ("a", 1, "a", "=="),
        ("a ==", 1, "a", "=="),
        ("a !=", 1, "a", "!="),
        ("a ~", "x*", "a", "~"),
        ("a  >=", 1, "a", ">="),
        (" a <", 1, "a", "<"),
        ("a @", "x", "a", "@"),
        ("a contains", ["x"], "a", "contains"),
        ("a in", [1], "a", "in"),
        ("a not-in", [1], "a", "not-in"),
        ("contains", 1, "contains", "=="),
        ("~", 1, "~", "=="),
        ("doc type", "x", "doc type", "=="),
        ("doc type !=", "x", "doc type", "!="),
        ("시행일 >", 1, "시행일", ">"),
        ("a > >=", 1, "a >", ">="),
    ],
)
def test_the_last_token_of_a_key_is_its_operator(
    key: str, value: object, prop: str, operator: str
) -> None:
    condition = only(key, value)
    assert (condition.prop, condition.operator) == (prop, operator)


@pytest.mark.parametrize("key", ["a>", "a>=", "시행일== "])
def test_an_operator_glued_to_its_property_is_refused(key: str) -> None:
    with pytest.raises(InvalidFilter, match="needs a space"):
        parse({key: 1}, None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("a =>", 1),
        ("a <>", 1),
        ("a $", 1),
        ("a ≠", 1),
        ("", 1),
        ("  ", 1),
        (" >=", 1),
        ("\ud800", 1),
        ("a in", []),
        ("a in", "x"),
        ("a in", [None]),
        ("a in", [[1]]),
        ("a not-in", []),
        ("a contains", []),
        ("a contains", {}),
        ("a", None),
        ("a", []),
        ("a", ["x"]),
        ("a", {"b": 1}),
        ("a", math.nan),
        ("a", math.inf),
        ("a", 10**400),
        ("a", "\ud800"),
        ("a ~", 1),
        ("a ~", ["x"]),
        ("a ~", "\ud800"),
        ("a >", "x"),
        ("a >", True),
        ("a >", [1]),
        ("a <", "2024-02-30"),
        ("a @", ["x"]),
    ],
)
def test_what_makes_no_sense_is_an_error_that_names_the_key(key: str, value: object) -> None:
    with pytest.raises(InvalidFilter) as raised:
        parse({key: value}, None)
    assert repr(key) in raised.value.detail
    assert ("what each operator compares" in raised.value.advice) == (
        "The value of" in raised.value.detail
    )


def test_no_groups_are_no_filter_and_an_empty_group_is_an_error() -> None:
    assert parse(None, None) is None
    with pytest.raises(InvalidFilter, match="having_all is empty"):
        parse({}, None)
    with pytest.raises(InvalidFilter, match="having_any is empty"):
        parse({"a": 1}, {})


def test_a_filter_of_too_many_values_is_refused() -> None:
    assert parse({"a in": list(range(MAX_VALUES))}, None)
    with pytest.raises(InvalidFilter, match="more than"):
        parse({"a in": list(range(MAX_VALUES)), "b": 1}, None)
    with pytest.raises(InvalidFilter, match=f"{MAX_VALUES} values"):
        parse({f"k{n} no-operator": n for n in range(MAX_VALUES + 1)}, None)


@pytest.mark.parametrize("pattern", ["a" * 201, "가" * 67, "*" * 17])
def test_a_pattern_that_is_too_long_is_refused(pattern: str) -> None:
    assert parse({"a ~": "a" * 184 + "*" * 16}, None)
    with pytest.raises(InvalidFilter, match="'a ~' has more than 200 bytes"):
        parse({"a ~": pattern}, None)


def test_both_groups_must_hold_when_both_are_given() -> None:
    where = parse({"a": 1}, {"b": 1, "c": 1})
    assert where == Where(
        (Condition("a", "==", 1.0),), (Condition("b", "==", 1.0), Condition("c", "==", 1.0))
    )
    assert matches(where, {"a": 1, "c": 1})
    assert not matches(where, {"a": 1})
    assert not matches(where, {"b": 1, "c": 1})


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-01-31", datetime(2024, 1, 31, tzinfo=UTC)),
        ("2024-01-31T12:30", datetime(2024, 1, 31, 12, 30, tzinfo=UTC)),
        ("2024-01-31T12:30:15.5Z", datetime(2024, 1, 31, 12, 30, 15, 500_000, tzinfo=UTC)),
        ("2024-01-31T09:00:00+09:00", datetime(2024, 1, 31, tzinfo=UTC)),
        ("20240131", None),
        ("2024-W05-3", None),
        ("2024-01", None),
        ("2024-02-30", None),
        ("2024-01-31 12:30", None),
        ("2024-01-31\n", None),
        ("0000-01-01", None),
        ("0001-01-01T00:00+14:00", None),
        ("٢٠٢٤-01-31", None),
        ("on 2024-01-31", None),
    ],
)
def test_only_a_whole_iso_8601_date_is_an_instant(text: str, moment: datetime | None) -> None:
    assert instant(text) == moment
    assert normalize(text) == (moment or text)


@pytest.mark.parametrize(
    ("key", "value", "properties", "expected"),
    [
        ("a", 1, {"a": 1.0}, True),
        ("a", 1, {"a": True}, False),
        ("a", True, {"a": 1}, False),
        ("a", "1", {"a": 1}, False),
        ("a", 0.0, {"a": -0.0}, True),
        ("a", "x", {"a": "X"}, False),
        ("a", "x", {"a": ["x"]}, False),
        ("a !=", "x", {"a": ["x"]}, True),
        ("a !=", "x", {}, True),
        ("a", "2024-01-01", {"a": "2024-01-01T00:00:00Z"}, True),
        ("a in", ["q", 1], {"a": 1}, True),
        ("a not-in", ["q", 1], {"a": 1}, False),
        ("a not-in", ["q"], {}, True),
        ("a ~", "x*z", {"a": "x\ny z"}, True),
        ("a ~", "x*z", {"a": "axz"}, False),
        ("a ~", "x.z", {"a": "xyz"}, False),
        ("a ~", "2024-*", {"a": "2024-01-01"}, True),
        ("a ~", "*", {"a": 5}, False),
        ("a ~", "*", {"a": ["x"]}, False),
        ("a ~", "", {"a": ""}, True),
        ("a >", 1, {"a": "2024-01-01"}, False),
        ("a >", 1, {"a": True}, False),
        ("a >", 1, {"a": [2]}, False),
        ("a >", 1, {}, False),
        ("a >=", 2, {"a": 2}, True),
        ("a <", "2024-01-01", {"a": "2023-12-31T23:59:59Z"}, True),
        ("a @", "x", {"a": ["x", "y"]}, True),
        ("a @", "x", {"a": "x"}, False),
        ("a @", "2024-01-01", {"a": ["2024-01-01T09:00:00+09:00"]}, True),
        ("a contains", ["q", "y"], {"a": ["x", "y"]}, True),
        ("a contains", "y", {"a": ["x", "y"]}, True),
        ("a contains", ["q"], {"a": []}, False),
    ],
)
def test_what_each_operator_means(
    key: str, value: object, properties: dict[str, object], expected: bool
) -> None:
    assert holds(key, value, properties) is expected
