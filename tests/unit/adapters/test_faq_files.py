"""Files of an FAQ, sound and otherwise."""

import json
from pathlib import Path

import pytest

from callslip.compat.faq.files import read
from callslip.compat.faq.rows import made_id
from callslip.errors import InvalidRequest

ROWS = [
    {"id": 7, "question": "여권은 어디서 만드나요?", "answer": "시청에서"},
    {"id": "b", "question": "Why?", "answer": "Because,\nit is so."},
]


def write(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refused(tmp_path: Path, name: str, content: str | bytes) -> str:
    with pytest.raises(InvalidRequest) as caught:
        read(write(tmp_path, name, content))
    assert caught.value.advice
    return caught.value.detail


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("faq.json", json.dumps(ROWS)),
        ("FAQ.JSON", "\ufeff" + json.dumps(ROWS, ensure_ascii=False, indent=1)),
        ("faq.json", json.dumps({"made": "today", "faqs": ROWS})),
        ("faq.json", "\n".join(json.dumps(row) for row in ROWS)),
        ("faq.jsonl", "\n\n".join(json.dumps(row) for row in ROWS) + "\r\n"),
        ("faq.ndjson", "\ufeff" + "\r\n".join(json.dumps(row) for row in ROWS)),
    ],
)
def test_json_is_an_array_or_lines_and_keeps_the_type_of_ids(
    tmp_path: Path, name: str, content: str
) -> None:
    found = read(write(tmp_path, name, content))
    assert [row.model_dump() for row in found.rows] == ROWS
    assert found.passed_over == ()


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_has_its_columns_in_any_order(tmp_path: Path, delimiter: str) -> None:
    lines = [
        ["Answer", " ID ", "kind", "QUESTION"],
        ["시청에서", "7", "x", "여권은 어디서 만드나요?"],
        ['"Because,\r\nit is ""so""."', " b ", "y", "Why?"],
        ["Never", "", "z", "When?"],
    ]
    text = "\ufeff" + "\r\n".join(delimiter.join(line) for line in lines) + "\r\n\r\n"
    found = read(write(tmp_path, "faq.csv", text))
    assert [row.id for row in found.rows] == ["7", "b", made_id("When?")]
    assert found.rows[1].answer == 'Because,\r\nit is "so".'
    assert found.passed_over == ("kind",)


def test_a_row_without_an_id_has_the_same_one_each_time(tmp_path: Path) -> None:
    row = {"question": " 한글 ", "answer": "a"}
    decomposed = {"question": "한글", "answer": "b", "id": None}
    ids = [read(write(tmp_path, "a.json", json.dumps([r]))).rows[0].id for r in (row, decomposed)]
    assert ids[0] == ids[1]


def test_what_else_is_wrong_does_not_hide_an_id_that_stands_twice(tmp_path: Path) -> None:
    rows = [{"id": 1, "question": "q", "answer": a} for a in ("a", "")]
    output = refused(tmp_path, "faq.json", json.dumps(rows))
    assert "row 2: answer: is empty" in output
    assert "row 2: id: 1 is that of row 1 too" in output


def test_every_wrong_row_is_named_with_its_field(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "question": "q", "answer": "a"},
        {"id": "1", "question": "q", "answer": "a"},
        {"id": 2.5, "question": " ", "answer": ["a"]},
        {"id": True, "question_": "q", "answer": "a"},
        {"id": "", "question": "q", "answer": None},
        {"id": 2**60, "question": "q\ud800", "answer": "a" * 32_001},
    ]
    output = refused(tmp_path, "faq.json", json.dumps(rows))
    for expected in (
        "row 2: id: '1' is that of row 1 too",
        "row 3: id: is neither a text nor a whole number",
        "row 3: question: is empty",
        "row 3: answer: Input should be a valid string",
        "row 4: question: Field required",
        "row 5: id: is empty",
        "and 1 more",
    ):
        assert expected in output


@pytest.mark.parametrize(
    "unseen", ["\u200b", "\u0001", "\ufeff", " \u200b\u3000", "\x85", "\u2581"]
)
def test_a_text_that_nobody_sees_is_empty(tmp_path: Path, unseen: str) -> None:
    rows = [{"question": "q", "answer": "a"}, {"question": unseen, "answer": unseen}]
    output = refused(tmp_path, "faq.json", json.dumps(rows))
    assert "row 2: question: is empty" in output
    assert "row 2: answer: is empty" in output


def test_an_endless_list_of_faults_is_cut(tmp_path: Path) -> None:
    output = refused(tmp_path, "faq.jsonl", "{}\n" * 500)
    assert output.count("\n") == 11
    assert "line 1: question: Field required" in output
    assert output.endswith("and 1490 more")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("faq.txt", "x", "by its name"),
        ("faq.json", "", "is not JSON"),
        ("faq.json", "[]", "holds no row"),
        ("faq.json", "7", "no array"),
        ("faq.json", "[7]", "row 1: is no object"),
        ("faq.json", '[{"question": "q",\n "answer": }]', "line 2"),
        ("faq.json", "[" * 100_000, "nested too deeply"),
        ("faq.json", '{"question": "q"}\n{"question"', "line 2: is not JSON"),
        ("faq.jsonl", '{"question": "q", "answer": "a"}\n[1]', "line 2: is no object"),
        ("faq.jsonl", "\n \n", "holds no row"),
        ("faq.csv", "", "holds no row"),
        ("faq.csv", "question,answer\n", "holds no row"),
        ("faq.csv", "question,reply\nq,a\n", "lacks answer"),
        ("faq.csv", "id,question,answer,ID\n1,q,a,2\n", "has id twice"),
        ("faq.csv", "question,answer\nq,a,b\n", "line 2: has 3 cells, the header 2"),
        ("faq.csv", 'question,answer\nq,"a\n', "is no CSV"),
        ("faq.csv", "question,answer\nq,a\nr\n", "line 3: answer: "),
        ("faq.csv", "question,answer\nq,a\n여권,b\n".encode("cp949"), "not UTF-8: line 3"),
        ("faq.json", json.dumps(ROWS).encode("utf-16"), "not UTF-8: line 1"),
    ],
)
def test_a_file_that_is_none_is_refused_with_the_place(
    tmp_path: Path, name: str, content: str | bytes, expected: str
) -> None:
    assert expected in refused(tmp_path, name, content)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot read"):
        read(tmp_path / "faq.csv")
