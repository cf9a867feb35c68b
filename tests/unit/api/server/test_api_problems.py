"""What a problem says about a field that is wrong."""

import json
import time
from typing import Any

import pytest
from flask import Flask
from pydantic import BaseModel, ValidationError

from callslip.agent.messages import AnswerRequest
from callslip.api.http.problems import invalid, message_of
from callslip.messages.options import Options
from callslip.messages.values import RepeatedName, unique
from callslip.problems import MOST_ERRORS


@pytest.mark.parametrize(
    ("kind", "body", "message"),
    [
        (AnswerRequest, {"collection": "a", "question": ""}, "is empty"),
        (
            AnswerRequest,
            {"collection": "a", "question": "b", "thread_id": "가 나/다"},
            "is no name: at most 64 Latin letters, digits, `.`, `_` and `-`, no `.` first",
        ),
        (Options, {"foo": "bar"}, "is not known"),
    ],
)
def test_a_field_is_wrong_in_words(
    kind: type[BaseModel], body: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError) as raised:
        kind.model_validate(body)
    assert [message_of(each) for each in raised.value.errors()] == [message]


def test_of_many_wrong_values_the_response_has_the_number_alone() -> None:
    app = Flask(__name__)
    for names, listed in ((MOST_ERRORS, MOST_ERRORS), (MOST_ERRORS + 1, 0)):
        with pytest.raises(ValidationError) as raised:
            Options.model_validate({f"unknown{at}": 1 for at in range(names)})
        with app.app_context():
            body = invalid(raised.value).get_json()
        assert len(body.get("errors", [])) == listed
    assert body["detail"] == "1,001 values are wrong, or names are not known"


def test_a_repeated_name_among_many_is_found_at_once() -> None:
    """The time grows with the number of names, not with its square."""
    body = "{" + ",".join(f'"k{at}": 1' for at in range(50_000)) + ', "k49999": 2}'
    began = time.process_time()
    with pytest.raises(RepeatedName, match="'k49999' is there twice"):
        json.loads(body, object_pairs_hook=unique)
    assert time.process_time() - began < 2
