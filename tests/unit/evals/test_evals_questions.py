"""Questions whose answers are known: what is read, and which answers are right."""

from pathlib import Path

import pytest

from benchmarks.quality.questions import Question, folders, read
from callslip.errors import JudgedSetError

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_the_questions_of_the_examples_are_questions_with_their_answers() -> None:
    questions = read(EXAMPLES / "questions.jsonl")
    assert len({(q.question, q.as_of) for q in questions}) == len(questions)
    assert 0 < sum(not q.answerable for q in questions) < len(questions)
    assert folders(EXAMPLES) == [EXAMPLES / "documents"]


@pytest.mark.parametrize(
    ("says", "text", "right"),
    [
        (["100만 원"], "첫째 아이: 100만원", True),
        (["9 won", "Free"], "It is free.", True),
        (["9 won"], "It is free.", False),
        ([], "It is free.", False),
    ],
)
def test_a_phrase_is_in_a_right_answer(says: list[str], text: str, right: bool) -> None:
    question = Question(question="?", says=says)
    assert (question.answerable, question.accepts(text)) == (bool(says), right)


@pytest.mark.parametrize(
    ("pattern", "text", "right"),
    [
        ("4 weeks|month", "Four or\n4  Weeks.", True),
        ("4 weeks", "14weeks", False),
        (None, "4 weeks", False),
    ],
)
def test_a_pattern_matches_a_right_answer(pattern: str | None, text: str, right: bool) -> None:
    question = Question(question="?", pattern=pattern)
    assert (question.answerable, question.accepts(text)) == (bool(pattern), right)


def test_the_fields_for_readers_and_the_other_name_of_the_question_are_read(tmp_path: Path) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"_id": "h1", "text": "how?", "file": null, "pattern": null}\n')
    assert [(q.id, q.question, q.answerable) for q in read(file)] == [("h1", "how?", False)]


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("", "has no questions"),
        ("{", ":1: no JSON"),
        ('{"question": "a", "says": []}\n[]', ":2:"),
        ('{"question": "a", "says": "b"}', ":1: says"),
        ('{"question": 1, "says": []}', ":1: question"),
        ('{"question": "a"}', ":1: .*either says or pattern"),
        ('{"question": "a", "says": [], "pattern": null}', ":1: .*either says or pattern"),
        ('{"question": "a", "pattern": "("}', ":1: pattern: .*no regular expression"),
    ],
)
def test_a_file_that_is_none_is_named(tmp_path: Path, text: str, output: str) -> None:
    file = tmp_path / "q.jsonl"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(JudgedSetError, match=output):
        read(file)
    with pytest.raises(JudgedSetError, match="cannot be read"):
        read(tmp_path / "nothing")


def test_a_folder_without_documents_is_named(tmp_path: Path) -> None:
    with pytest.raises(JudgedSetError, match="no folder with documents"):
        folders(tmp_path)
