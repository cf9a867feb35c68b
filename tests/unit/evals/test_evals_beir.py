"""Judged sets in BEIR form are read whole, or refused with file and line."""

import json
from pathlib import Path

import pytest

from callslip.errors import JudgedSetError
from callslip.evals.beir import Document, read, read_corpus

CORPUS = [
    {"_id": "d1", "title": "Leave", "text": "Ten days a year.", "metadata": {"year": 2024}},
    {"_id": "d2", "title": "", "text": "출산 장려금"},
    {"_id": "d3", "title": " ", "text": "\n"},
]
QUERIES = [{"_id": "q1", "text": "how much leave?"}, {"_id": "q2", "text": "장려금"}]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t1\n"


def write(folder: Path, name: str, content: object) -> None:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    if isinstance(content, list):
        content = "".join(json.dumps(line) + "\n" for line in content)
    path.write_text(str(content))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, "corpus.jsonl", CORPUS)
    write(tmp_path, "queries.jsonl", QUERIES)
    write(tmp_path, "qrels.tsv", QRELS)
    return tmp_path


def test_a_set_is_its_documents_queries_and_judgements(folder: Path) -> None:
    judged = read(folder)
    assert judged.name == folder.name
    assert judged.documents == 2
    assert judged.queries == {"q1": "how much leave?", "q2": "장려금"}
    assert judged.qrels == {"q1": {"d1": 2}, "q2": {"d2": 1}}
    assert [document.document_id for document in judged.corpus()] == ["d1", "d2"]


def test_what_is_indexed_is_title_line_end_text() -> None:
    assert Document("d", "Leave", "Ten days.", {}).content == "Leave\nTen days."
    assert Document("d", "", "Ten days.", {}).content == "Ten days."


def test_documents_without_text_are_left_out_and_counted(folder: Path) -> None:
    assert read(folder).warnings == ("1 documents without text left out",)


def test_judgements_are_found_where_beir_keeps_them_too(folder: Path) -> None:
    (folder / "qrels.tsv").unlink()
    write(folder, "qrels/test.tsv", QRELS)
    assert len(read(folder).qrels) == 2


def test_judgements_without_a_header_are_read(folder: Path) -> None:
    write(folder, "qrels.tsv", "q1\td1\t1\n")
    assert read(folder).qrels == {"q1": {"d1": 1}}


def test_a_judged_document_that_the_corpus_lacks_counts_as_never_found(folder: Path) -> None:
    write(folder, "qrels.tsv", QRELS + "q1\tgone\t1\n")
    judged = read(folder)
    assert judged.qrels["q1"] == {"d1": 2, "gone": 1}
    assert "1 judgements on documents that the corpus lacks" in judged.warnings


def test_judgements_of_unknown_queries_are_left_out_and_counted(folder: Path) -> None:
    write(folder, "qrels.tsv", QRELS + "gone\td1\t1\n")
    judged = read(folder)
    assert set(judged.qrels) == {"q1", "q2"}
    assert "1 judgements of unknown queries left out" in judged.warnings


def test_queries_that_nothing_answers_are_left_out_and_counted(folder: Path) -> None:
    write(folder, "queries.jsonl", [*QUERIES, {"_id": "q3", "text": "unjudged"}])
    write(folder, "qrels.tsv", "q1\td1\t1\nq2\td2\t0\n")
    judged = read(folder)
    assert set(judged.queries) == {"q1"}
    assert "2 queries that no document answers left out" in judged.warnings


@pytest.mark.parametrize("name", ["corpus.jsonl", "queries.jsonl", "qrels.tsv"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(JudgedSetError, match=f"{name} is missing"):
        read(folder)


@pytest.mark.parametrize(
    ("name", "content", "output"),
    [
        ("corpus.jsonl", '{"_id": "d1"}\n{"_id": \n', "corpus.jsonl:2: not JSON"),
        ("corpus.jsonl", "\n[1]\n", "corpus.jsonl:2: not an object"),
        ("corpus.jsonl", '{"_id": "d1"}\n{"_id": "d1"}\n', "corpus.jsonl:2: _id 'd1' stands in"),
        ("corpus.jsonl", '{"text": "x"}\n', "corpus.jsonl:1: _id is not a text"),
        ("corpus.jsonl", '{"_id": 7}\n', "corpus.jsonl:1: _id is not a text"),
        ("corpus.jsonl", '{"_id": "a", "text": 7}\n', "corpus.jsonl:1: text is not a text"),
        ("corpus.jsonl", '{"_id": "a", "metadata": [1]}\n', "corpus.jsonl:1: metadata is not an"),
        ("queries.jsonl", '{"_id": "q1", "text": " "}\n', "queries.jsonl:1: the query has no text"),
        ("qrels.tsv", "q1 d1 1\n", "qrels.tsv:1: 1 fields"),
        ("qrels.tsv", QRELS + "q1\td2\thigh\n", "qrels.tsv:4: the grade is not a whole number"),
        ("qrels.tsv", QRELS + "q1\td1\t1\n", "qrels.tsv:4: the second judgement of 'd1' for 'q1'"),
        ("qrels.tsv", "q1\tgone\t1\n", "judges no document of its corpus"),
    ],
)
def test_a_wrong_line_is_named(folder: Path, name: str, content: str, output: str) -> None:
    write(folder, name, content)
    with pytest.raises(JudgedSetError, match=output):
        read(folder)


def test_text_that_is_not_utf_8_is_named(folder: Path) -> None:
    (folder / "corpus.jsonl").write_bytes(b'{"_id": "d1", "text": "caf\xe9"}\n')
    with pytest.raises(JudgedSetError, match=r"corpus\.jsonl:1: not UTF-8"):
        read(folder)


def test_the_corpus_is_read_line_by_line(folder: Path) -> None:
    write(folder, "corpus.jsonl", '{"_id": "d1"}\nbroken\n')
    documents = read_corpus(folder)
    assert next(documents).document_id == "d1"
    with pytest.raises(JudgedSetError):
        next(documents)


def test_a_byte_order_mark_is_no_part_of_the_first_line(folder: Path) -> None:
    (folder / "corpus.jsonl").write_bytes(b"\xef\xbb\xbf" + json.dumps(CORPUS[0]).encode())
    assert next(read_corpus(folder)).document_id == "d1"


def test_some_queries_are_spread_over_the_set(folder: Path) -> None:
    write(folder, "queries.jsonl", [{"_id": f"q{n}", "text": "words"} for n in range(10)])
    write(folder, "qrels.tsv", "".join(f"q{n}\td1\t1\n" for n in range(10)))
    judged = read(folder, 3)
    assert list(judged.queries) == list(judged.qrels) == ["q0", "q3", "q6"]
    assert len(read(folder, 10).queries) == len(read(folder, 11).queries) == 10


def test_the_moment_that_a_query_asks_about_is_read_from_its_metadata(folder: Path) -> None:
    dated = [{**QUERIES[0], "metadata": {"as_of": "2020-03-31"}}, *QUERIES[1:]]
    write(folder, "queries.jsonl", dated)
    assert read(folder).as_of == {"q1": "2020-03-31"}
    write(folder, "queries.jsonl", [{**QUERIES[0], "metadata": {"as_of": 2020}}, *QUERIES[1:]])
    with pytest.raises(JudgedSetError, match="as_of is not a text"):
        read(folder)


def test_two_halves_are_the_queries_once_each(folder: Path) -> None:
    judged = read(folder)
    halves = [judged.half(0), judged.half(1)]
    assert [list(half.queries) for half in halves] == [["q1"], ["q2"]]
    assert halves[0].qrels | halves[1].qrels == judged.qrels
    assert list(halves[1].at_most(5).queries) == ["q2"]
