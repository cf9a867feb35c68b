"""Questions whose answers are known: what is read, and what an answer is worth."""

from pathlib import Path

import pytest

from benchmarks.quotes import Question, read, row
from callslip.errors import JudgedSetError

EXAMPLES = Path(__file__).parents[3] / "examples" / "questions.jsonl"


def test_the_questions_of_the_examples_are_questions_with_their_answers() -> None:
    questions = read(EXAMPLES)
    assert len({(q.question, q.as_of) for q in questions}) == len(questions)
    assert 0 < sum(not q.says for q in questions) < len(questions)


@pytest.mark.parametrize(
    ("says", "answered", "text", "outcome"),
    [
        (["100만 원"], True, "첫째 아이: 100만원", "right"),
        (["9 won", "Free"], True, "It is free.", "right"),
        (["9 won"], True, "It is free.", "wrong"),
        (["9 won"], False, "", "refused"),
        ([], False, "", "rightly refused"),
        ([], True, "It is free.", "wrongly answered"),
    ],
)
def test_what_an_answer_is_worth(says: list[str], answered: bool, text: str, outcome: str) -> None:
    assert Question(question="?", says=says).outcome(answered, text) == outcome


def test_a_row_counts_what_is_answerable_and_what_is_not() -> None:
    outcomes = ("right", "right", "wrong", "refused", "rightly refused", "wrongly answered")
    assert row(outcomes) == ["4", "2", "1", "1", "2", "1"]


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("", "has no questions"),
        ("{", ":1: no JSON"),
        ('{"question": "a", "says": []}\n[]', ":2:"),
        ('{"question": "a", "says": "b"}', ":1: says"),
        ('{"question": 1, "says": []}', ":1: question"),
    ],
)
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str, output: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(JudgedSetError, match=output):
        read(file)
    with pytest.raises(JudgedSetError, match="cannot be read"):
        read(tmp_path / "nothing")
