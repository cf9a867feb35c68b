"""The Document Retriever's endpoints: what is found, and what bad dialogs are answered."""

import json
import os
import sqlite3
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from annotator_parts import (
    DESERT,
    LAMB,
    ROSE,
    attributes,
    candidates,
    clean,
    dialog,
    post,
    upload,
    vectorized,
)
from flask.testing import FlaskClient

from callslip.api import annotator_wsgi
from callslip.compat.annotator.configuration import Tokenizer, tokenizer
from callslip.compat.annotator.words import words
from callslip.errors import SettingsError

pytest_plugins = ["annotator_fixtures"]
pytestmark = pytest.mark.usefixtures("fresh")

MALFORMED: tuple[Any, ...] = (
    *(None, True, 7, -1.5, "x", "\ud800", [], [None], [[]], {}, {"a": [{}]}, [7], ["\ud800"]),
    *({"": None}, "x" * 100_000, ["x"] * 1000, {"a": "../../etc/passwd"}, 10**400),
)
"""What may stand where something else should."""


def test_documents_are_vectorized_once_and_the_nearest_chunks_are_named(
    client: FlaskClient, tmp_path: Path
) -> None:
    links = {"b": upload(client, ROSE + DESERT), "a": upload(client, LAMB)}
    model = vectorized(client, links)
    assert model["file_ids"] == ["b", "a"]
    name = model["db_link"].partition("http://127.0.0.1:8765/file?file=")[2]
    assert name.endswith("_7ed546db_98.db")
    assert model["matrix_link"] == model["db_link"].removesuffix("db") + "npz"
    with sqlite3.connect(tmp_path / "annotator" / name) as database:
        found = database.execute("SELECT id, file_id, text FROM documents JOIN files USING (id)")
        rows = {id_: (file_id, text.split()[0]) for id_, file_id, text in found}
    assert rows == {
        "1.txt": ("b", "Roses"),
        "2.txt": ("b", "What"),
        "3.txt": ("b", "What"),
        "4.txt": ("a", "The"),
    }
    again = dialog(links, model_info={**model, "file_ids": ["a", "b"]})
    assert post(client, "vectorize_documents", [again]) == [{}]
    changed = dialog(links, model_info={**model, "file_ids": ["a"]})
    assert post(client, "vectorize_documents", [changed]) != [{}]
    for request, best in (("Who drew the lamb?", "4.txt"), ("a THORN, thorns!", "1.txt")):
        (answer,) = post(client, "return_candidates", [dialog(links, request, model_info=model)])
        assert answer["candidate_files"][0] == best
        assert sorted(answer["candidate_files"]) == ["1.txt", "2.txt", "3.txt", "4.txt"]


@pytest.mark.parametrize("question", ["Hi!", "", "who are you", "zzz", "\ud800", "?!"])
def test_a_question_of_no_known_word_gets_the_first_chunks(
    client: FlaskClient, question: str
) -> None:
    found = candidates(client, {"a": upload(client, (ROSE + DESERT) * 4)}, question)
    assert found == [{"candidate_files": ["1.txt", "2.txt", "3.txt", "4.txt", "5.txt"]}]


@pytest.mark.parametrize(
    ("text", "found"), [("", []), (" \n\n", []), ("...", ["1.txt"]), ("one", ["1.txt"])]
)
def test_no_chunk_and_one_chunk_are_answered(
    client: FlaskClient, text: str, found: list[str]
) -> None:
    link = upload(client, text)
    assert candidates(client, {"a": link}, "one") == [{"candidate_files": found}]


@pytest.mark.long
def test_a_korean_question_finds_a_word_with_another_particle(client: FlaskClient) -> None:
    text = "\n".join(["연차 휴가는 십오일이다. " * 40, "출산장려금을 지급한다. " * 40])
    (answer,) = candidates(client, {"a": upload(client, text)}, "출산 장려금은 얼마인가요?")
    assert answer["candidate_files"][0] == "2.txt"


def test_a_bad_dialog_spoils_no_other(client: FlaskClient) -> None:
    links = {"a": upload(client, LAMB)}
    unknown = dialog(links)
    unknown["human"]["attributes"]["documents_in_use"] = ["a", "never heard of"]
    lost = dialog({"a": links["a"].replace("a.txt", "b.txt")})
    batch = [7, dialog(links), {}, unknown, {"human": []}, lost, dialog(links)]
    answers = post(client, "vectorize_documents", batch)
    assert [bool(answer) for answer in answers] == [False, True, False, False, False, False, True]
    model = answers[1]["human_attributes"]["model_info"]
    batch[1] = dialog(links, "lamb", model_info=model)
    answers = post(client, "return_candidates", batch)
    assert answers == [{}, {"candidate_files": ["1.txt"]}, {}, {}, {}, {}, {}]


@pytest.mark.parametrize(
    "path", ["vectorize_documents", "return_candidates", "process_and_upload_doc"]
)
def test_wrong_types_in_every_field_are_answered(client: FlaskClient, path: str) -> None:
    link = upload(client, LAMB)
    model = vectorized(client, {"a": link})
    dialogs = []
    for wrong in MALFORMED:
        whole = dialog({"a": link}, "lamb", model_info=model)
        human = {"attributes": attributes({"a": link}, model_info=model)}
        dialogs += [wrong, *({**whole, field: wrong} for field in whole)]
        dialogs += [{**whole, "human": {"attributes": wrong}}]
        dialogs += [{**whole, "human_utterances": [wrong]}]
        dialogs += [{**whole, "human_utterances": [{"text": wrong}]}]
        dialogs += [{**whole, "human_utterances": [{"attributes": {"documents": wrong}}]}]
        dialogs += [{**whole, "bot_utterances": wrong}]
        for field in human["attributes"]:
            changed = {"attributes": {**human["attributes"], field: wrong}}
            dialogs.append({**whole, "human": changed})
        for field in model:
            dialogs.append(dialog({"a": link}, "lamb", model_info={**model, field: wrong}))
        for field in ("processed_text_link", "initial_path_or_link"):
            documents = {"a": {"processed_text_link": link, field: wrong}}
            dialogs.append({"human": {"attributes": {**human["attributes"], "model_info": None}}})
            dialogs[-1]["human"]["attributes"]["processed_documents"] = documents
    answers = post(client, path, dialogs)
    assert len(answers) == len(dialogs)
    assert all(isinstance(answer, dict) for answer in answers)


@pytest.mark.parametrize(
    "path", ["vectorize_documents", "return_candidates", "process_and_upload_doc"]
)
@pytest.mark.parametrize(
    "body",
    [
        *("", "x", "[]", "{}", "7", "null", '{"dialogs": 7}', '{"dialogs": {}}', "[" * 10_000),
        *('{"dialogs": null}', '{"dialogs": "x"}', '{"dialogs": ' + "[" * 5000, b"\xff"),
        json.dumps({"dialogs": [{}] * 1001}),
    ],
)
def test_what_is_no_batch_is_a_problem(client: FlaskClient, path: str, body: str | bytes) -> None:
    response = client.post(f"/{path}", data=body, content_type="application/json")
    assert response.status_code == 400
    assert response.content_type == "application/problem+json"


def vectorize_in_a_process(folder: str, link: str) -> Any:
    os.environ["CALLSLIP_DATA_DIR"] = folder
    return vectorized(annotator_wsgi.create_app().test_client(), {"a": link})


@pytest.mark.long
def test_one_dialog_in_several_processes_and_threads_at_once(
    client: FlaskClient, tmp_path: Path
) -> None:
    link = upload(client, ROSE * 20)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        jobs = [processes.submit(vectorize_in_a_process, str(tmp_path), link) for _ in range(4)]
        with ThreadPoolExecutor(4) as threads:
            made = list(threads.map(lambda _: vectorized(client, {"a": link}), range(8)))
        made += [job.result() for job in jobs]
    assert len({model["db_link"] for model in made}) == 12
    for model in made:
        request = dialog({"a": link}, "thorns", model_info=model)
        (answer,) = post(client, "return_candidates", [request])
        assert len(answer["candidate_files"]) == 5


def test_a_matrix_that_is_something_else_is_no_model(client: FlaskClient) -> None:
    text = upload(client, LAMB)
    for content in (b"", b"PK\x03\x04", bytes(1000), LAMB.encode()):
        link = upload(client, content, "m.npz")
        model = {"matrix_link": link, "db_link": link, "file_ids": ["a"]}
        request = dialog({"a": text}, "lamb", model_info=model)
        assert post(client, "return_candidates", [request]) == [{}]


def test_texts_too_long_together_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clean(monkeypatch, tmp_path, CALLSLIP_ANNOTATOR__MAX_TEXT_MB="1")
    client = annotator_wsgi.create_app().test_client()
    texts = {"a": ROSE * 450, "b": DESERT * 300, "c": LAMB * 6000}
    links = {name: upload(client, text, f"{name}.txt") for name, text in texts.items()}
    links_of_two = {name: links[name] for name in "ab"}
    assert post(client, "vectorize_documents", [dialog(links_of_two)]) != [{}]
    assert post(client, "vectorize_documents", [dialog(links)]) == [{}]


ORIGINAL: dict[str, Any] = {
    "class_name": "stream_spacy_tokenizer",
    **{"lemmas": True, "lowercase": True, "filter_stopwords": True, "ngram_range": [1, 2]},
}
"""The tokenizer of the original's doc_retriever_config.json."""


def configured(folder: Path, *pipe: Any) -> Tokenizer:
    path = folder / f"{time.monotonic_ns()}.json"
    path.write_text(json.dumps({"chainer": {"pipe": list(pipe)}}))
    return tokenizer(path)


def test_the_tokenizer_of_a_configuration_is_followed(tmp_path: Path) -> None:
    vectorizer = {"class_name": "hashing_tfidf_vectorizer", "tokenizer": ORIGINAL}
    assert configured(tmp_path, vectorizer, {"class_name": "tfidf_ranker"}) == Tokenizer(
        lemmas=True
    )
    step = {"id": "words", "class_name": "stream_spacy_tokenizer", "alphas_only": True}
    assert configured(tmp_path, step, {"tokenizer": "#words"}) == Tokenizer(alphas_only=True)
    assert configured(tmp_path, {"tokenizer": {"alphas_only": None}}) == Tokenizer()
    assert configured(tmp_path) == Tokenizer()
    assert words("Room 7 has B52", stop_words=False, stems=False, alphas_only=True) == "room has"


@pytest.mark.parametrize(
    ("pipe", "named"),
    [
        ([{"tokenizer": {"class_name": "ru_tokenizer", "lemmas": True}}], "'ru_tokenizer'"),
        ([{"class_name": "nltk_tokenizer", "in": ["docs"]}], "'nltk_tokenizer'"),
        ([{"tokenizer": ORIGINAL}, {"tokenizer": {"lemmas": False}}], "tokenizers differ"),
        ([{"tokenizer": ORIGINAL | {"ngram_range": [1, 3]}}], r"ngram_range .* is \[1, 3\]"),
        ([{"tokenizer": {"lowercase": False}}], "lowercase .* is false"),
        ([{"tokenizer": {"stopwords": ["a"]}}], "stopwords"),
        ([{"tokenizer": {"lemmas": 1}}], "lemmas"),
        ([{"tokenizer": {"stems": True}}], "'stems'"),
        ([{"tokenizer": "#words"}], "'#words'"),
        ([{"tokenizer": 7}], "#ID"),
    ],
)
def test_a_tokenizer_that_is_not_followed_is_named(
    tmp_path: Path, pipe: list[Any], named: str
) -> None:
    with pytest.raises(SettingsError, match=named):
        configured(tmp_path, *pipe)


@pytest.mark.parametrize("text", ["7", "null", '"a"', "[", "{}}", "[" * 9000])
def test_a_file_that_is_no_configuration_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / f"{time.monotonic_ns()}.json"
    path.write_text(text)
    with pytest.raises(SettingsError, match=path.name):
        tokenizer(path)


def test_the_variables_of_the_original_hold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = {"chainer": {"pipe": [{"tokenizer": {"lemmas": True, "filter_stopwords": False}}]}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    clean(monkeypatch, tmp_path, PARAGRAPHS_NUM="2", CONFIG_PATH=str(tmp_path / "config.json"))
    client = annotator_wsgi.create_app().test_client()
    link = upload(client, (ROSE + DESERT) * 3)
    (answer,) = candidates(client, {"a": link}, "hiding")  # the text has `hides`
    assert len(answer["candidate_files"]) == 2
    assert "1.txt" not in answer["candidate_files"]
