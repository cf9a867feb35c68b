"""What properties a document may carry."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.errors import InvalidRequest
from callslip.stores.properties.checks import document_fault
from callslip.stores.properties.values import (
    LONGEST_LIST,
    LONGEST_NAME,
    LONGEST_TEXT,
    MOST_PROPERTIES,
    check_properties,
)
from callslip.stores.records import FILTERABLE, DocumentRecord


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"text": "", "number": -1.5, "whole": 2**53, "flag": False, "시행일": "2024-01-01"},
        {"texts": ["a", "b"], "numbers": [1, 2.5], "flags": [True], "nothing": []},
        {"n" * LONGEST_NAME: "x" * LONGEST_TEXT, "l": ["x"] * LONGEST_LIST},
        {str(n): n for n in range(MOST_PROPERTIES)},
    ],
)
def test_properties_are_kept_as_they_are(given: dict[str, Any]) -> None:
    assert check_properties(given, reserved=FILTERABLE) == given


def test_days_of_validity_are_whole_dates_of_a_month_or_year_the_first() -> None:
    given = {"valid_from": "1988-08", "valid_to": "1990", "year": "1988"}
    kept = {"valid_from": "1988-08-01", "valid_to": "1990-01-01", "year": "1988"}
    assert check_properties(given, reserved=FILTERABLE) == kept
    moment = {"valid_from": "2024-01-01T09:00:00+09:00", "valid_to": "2024-01-01"}
    assert check_properties(moment, reserved=FILTERABLE) == moment


@pytest.mark.parametrize(
    ("given", "reply"),
    [
        ({"valid_from": "soon"}, "'valid_from' is not a date"),
        ({"valid_to": 20240101}, "'valid_to' is not a date"),
        ({"valid_to": ["2024-01-01"]}, "'valid_to' is not a date"),
        (
            {"valid_from": "2024-01-02", "valid_to": "2024-01-01"},
            r"valid_to \(2024-01-01\) is before valid_from \(2024-01-02\)",
        ),
        (["a"], "not an object"),
        (None, "not an object"),
        ({str(n): n for n in range(MOST_PROPERTIES + 1)}, "65 properties"),
        ({" ": 1}, "name has"),
        ({"": 1}, "name has"),
        ({"n" * (LONGEST_NAME + 1): 1}, "name has"),
        ({1: 1}, "name has"),
        ({"\ud800": 1}, "name is not valid Unicode"),
        ({"title": "t"}, "'title' is a field"),
        ({"p": None}, "'p' is neither"),
        ({"p": {"a": 1}}, "'p' is neither"),
        ({"p": [["a"]]}, "'p' is neither"),
        ({"p": [1, "a"]}, "several types"),
        ({"p": [1, True]}, "several types"),
        ({"p": "x" * (LONGEST_TEXT + 1)}, "8001 characters"),
        ({"p": ["x"] * (LONGEST_LIST + 1)}, "257 values"),
        ({"p": "\ud800"}, "'p' is not valid Unicode"),
        ({"p": ["a", "\udfff"]}, "'p' is not valid Unicode"),
        ({"p": float("nan")}, "cannot be kept exactly"),
        ({"p": float("-inf")}, "cannot be kept exactly"),
        ({"p": 10**400}, "cannot be kept exactly"),
        ({"p": 2**53 + 1}, "cannot be kept exactly"),
    ],
)
def test_a_wrong_property_is_named(given: object, reply: str) -> None:
    with pytest.raises(InvalidRequest, match=reply):
        check_properties(given, reserved=FILTERABLE)


SCALARS = st.one_of(
    st.text(), st.integers(), st.floats(), st.booleans(), st.none(), st.just("😀" * LONGEST_TEXT)
)


@given(st.dictionaries(st.text(), st.one_of(SCALARS, st.lists(SCALARS, max_size=3)), max_size=3))
def test_what_the_server_takes_every_store_takes(given: dict[str, Any]) -> None:
    try:
        kept = check_properties(given, reserved=FILTERABLE)
    except InvalidRequest:
        return
    assert document_fault(DocumentRecord("d", "", "", kept)) is None
    assert json.loads(json.dumps(kept)) == kept
