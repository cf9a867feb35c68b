"""What a problem says about a field that is wrong."""

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from callslip.agent.messages import AnswerRequest
from callslip.api.http.problems import message_of
from callslip.messages.options import Options


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
