"""The Document Retriever's endpoints and its file server."""

import io
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from annotator_parts import FileServer, Pages, attributes, clean, dialog, upload
from flask.testing import FlaskClient
from loopback import LoopbackServer

from api import annotator_wsgi
from api.app import create_app
from config import get_settings

LAMB = "The boy took a pencil and drew a lamb.\nThe prince wants to see it.\n"
ROSE = "Roses have thorns because they fear tigers.\n" * 20
DESERT = "What makes the desert beautiful is that it hides a well somewhere.\n" * 20

MALFORMED: tuple[Any, ...] = (
    *(None, True, 7, -1.5, "x", "\ud800", [], [None], [[]], {}, {"a": [{}]}, [7], ["\ud800"]),
    *({"": None}, "x" * 100_000, ["x"] * 1000, {"a": "../../etc/passwd"}, 10**400),
)
"""What may stand where something else should."""

LARGE = (
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    + bytes(3_000_000)
    + b"\r\n--x--\r\n"
)


@pytest.fixture(autouse=True)
def fresh(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    """Settings of each test's own; whatever is sent, no error but those with a name is met."""
    clean(monkeypatch, tmp_path)
    yield
    get_settings.cache_clear()
    assert [record.exc_text for record in caplog.records if record.exc_info] == []


@pytest.fixture
def client() -> FlaskClient:
    return annotator_wsgi.create_app().test_client()


def post(client: FlaskClient, path: str, dialogs: Any, **more: Any) -> Any:
    response = client.post(
        f"/{path}", data=json.dumps({"dialogs": dialogs, **more}), content_type="application/json"
    )
    assert response.status_code == 200, response.text
    return response.json


def downloaded(client: FlaskClient, link: str) -> Any:
    response = client.get(link.removeprefix("http://127.0.0.1:8765"), buffered=True)
    response.close()
    return response


def vectorized(client: FlaskClient, links: dict[str, str]) -> dict[str, Any]:
    (answer,) = post(client, "vectorize_documents", [dialog(links)])
    model: dict[str, Any] = answer["human_attributes"]["model_info"]
    return model


def candidates(client: FlaskClient, links: dict[str, str], asked: str) -> Any:
    model = vectorized(client, links)
    return post(client, "return_candidates", [dialog(links, asked, model_info=model)])


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
    for asked, best in (("Who drew the lamb?", "4.txt"), ("a THORN, thorns!", "1.txt")):
        (answer,) = post(client, "return_candidates", [dialog(links, asked, model_info=model)])
        assert answer["candidate_files"][0] == best
        assert sorted(answer["candidate_files"]) == ["1.txt", "2.txt", "3.txt", "4.txt"]


@pytest.mark.parametrize("asked", ["Hi!", "", "who are you", "zzz", "\ud800", "?!"])
def test_a_question_of_no_known_word_gets_the_first_chunks(client: FlaskClient, asked: str) -> None:
    found = candidates(client, {"a": upload(client, (ROSE + DESERT) * 4)}, asked)
    assert found == [{"candidate_files": ["1.txt", "2.txt", "3.txt", "4.txt", "5.txt"]}]


@pytest.mark.parametrize(
    ("text", "found"), [("", []), (" \n\n", []), ("...", ["1.txt"]), ("one", ["1.txt"])]
)
def test_no_chunk_and_one_chunk_are_answered(
    client: FlaskClient, text: str, found: list[str]
) -> None:
    link = upload(client, text)
    assert candidates(client, {"a": link}, "one") == [{"candidate_files": found}]


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


@pytest.mark.parametrize(
    "name", ["text", "html", "binary", "error", "missing", "away", "loop", "slow", "mute", "huge"]
)
def test_a_link_of_the_file_server_that_answers_badly_is_left_in_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    with LoopbackServer(Pages) as server:
        base = f"http://127.0.0.1:{server.server_port}"
        clean(
            monkeypatch,
            tmp_path,
            FILE_SERVER_URL=base,
            FILE_SERVER_TIMEOUT="1.0",
            CALLSLIP_API__MAX_UPLOAD_MB="2",
        )
        client = annotator_wsgi.create_app().test_client()
        began = time.monotonic()
        links = {"a": f"{base}/file?file={name}.txt"}
        answers = post(client, "vectorize_documents", [dialog(links), dialog(links), {}])
        assert answers == [{}, {}, {}]  # where the text was read, the model could not be kept
        model = {"matrix_link": links["a"], "db_link": links["a"], "file_ids": ["a"]}
        asked = dialog(links, "fox", model_info=model)
        assert post(client, "return_candidates", [asked]) == [{}]
        assert time.monotonic() - began < 5


@pytest.mark.parametrize(
    "link",
    [
        *("http://127.0.0.1:{port}/text", "http://localhost:{port}/file?file=text.txt", "x"),
        *("http://127.0.0.1:8765@127.0.0.1:{port}/file?file=text.txt", "file:///etc/passwd"),
        *("//127.0.0.1:{port}/text", "gopher://127.0.0.1:{port}/text", "http://[", "/etc/passwd"),
        *("http://127.0.0.1:99999/file?file=a", "http://169.254.169.254/latest", "\ud800"),
    ],
)
@pytest.mark.parametrize("allowed", ["file-server", "public"])
def test_a_link_leads_nowhere_inside(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, link: str, allowed: str
) -> None:
    asked = []

    class Watched(Pages):
        def do_GET(self) -> None:  # noqa: N802 - the base class's name
            asked.append(self.path)
            super().do_GET()

    clean(monkeypatch, tmp_path, CALLSLIP_ANNOTATOR__LINKS=allowed, FILE_SERVER_TIMEOUT="2")
    client = annotator_wsgi.create_app().test_client()
    with LoopbackServer(Watched) as server:
        links = {"a": link.format(port=server.server_port)}
        assert post(client, "vectorize_documents", [dialog(links)]) == [{}]
        named = {"human_utterances": [{"attributes": {"documents": [links["a"]]}}]}
        assert post(client, "process_and_upload_doc", [named]) == [{}]
    assert asked == []


def test_where_a_setting_allows_it_links_lead_to_other_servers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clean(
        monkeypatch,
        tmp_path,
        CALLSLIP_ANNOTATOR__LINKS="public",
        CALLSLIP_SOURCES__ALLOW_NETWORKS="127.0.0.1",
        FILE_SERVER_TIMEOUT="3",
        CALLSLIP_API__MAX_UPLOAD_MB="2",
    )
    client = annotator_wsgi.create_app().test_client()
    with LoopbackServer(Pages) as server:
        at = f"http://127.0.0.1:{server.server_port}"
        assert candidates(client, {"a": f"{at}/text"}, "fox") == [{"candidate_files": ["1.txt"]}]
        assert vectorized(client, {"a": f"{at}/away"})["file_ids"] == ["a"]
        for bad in ("html", "binary", "error", "missing", "loop", "slow", "huge"):
            assert post(client, "vectorize_documents", [dialog({"a": f"{at}/{bad}"})]) == [{}], bad
        page = {"human_utterances": [{"attributes": {"documents": [f"{at}/html", f"{at}/named"]}}]}
        (answer,) = post(client, "process_and_upload_doc", [page])
        known = answer["human_attributes"]["processed_documents"].values()
        assert [about["filename"] for about in known] == ["html", "fox tale"]


def test_another_file_server_keeps_the_files_and_is_asked_with_its_password(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with LoopbackServer(FileServer) as server:
        server.files, server.users = {"a.txt": LAMB.encode()}, []  # type: ignore[attr-defined]
        base = f"http://me:secret@127.0.0.1:{server.server_port}"
        clean(monkeypatch, tmp_path, FILE_SERVER_URL=base)
        client = annotator_wsgi.create_app().test_client()
        bare = f"http://127.0.0.1:{server.server_port}/file?file=a.txt"
        found = candidates(client, {"a": bare}, "lamb")
        assert found == [{"candidate_files": ["1.txt"]}]
        model = vectorized(client, {"a": bare})
        assert model["db_link"].startswith(f"{base}/file?file=")
        assert set(server.users) == {"me:secret"}  # type: ignore[attr-defined]
        assert len(server.files) == 5  # type: ignore[attr-defined]
    assert not (tmp_path / "annotator").exists()


def test_the_file_server_gives_back_what_it_got_and_writes_over_nothing(
    client: FlaskClient, tmp_path: Path
) -> None:
    first, same = upload(client, LAMB), upload(client, LAMB)
    other = upload(client, ROSE)
    assert first == same == "http://127.0.0.1:8765/file?file=a.txt"
    assert other != first
    for link, text in ((first, LAMB), (other, ROSE)):
        response = downloaded(client, link)
        assert response.text == text
        assert response.content_type == "text/plain; charset=utf-8"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert response.content_length == len(text.encode())
    page = upload(client, "<script>", "page.html")
    response = downloaded(client, page)
    assert response.content_type == "application/octet-stream"
    assert response.headers["Content-Disposition"] == "attachment; filename=page.html"
    assert len(list((tmp_path / "annotator").iterdir())) == 3


@pytest.mark.parametrize(
    "name",
    [
        *("../secret.txt", "..", ".", "", "/etc/passwd", "..%2fsecret.txt", "a/../../secret.txt"),
        *("..\\secret.txt", ".draft-x", "link.txt", "\x00", "a.txt\x00", "x" * 300, "folder", "é"),
        *("a.txt\n", "%2e%2e/secret.txt"),
    ],
)
def test_no_name_leads_out_of_the_folder(client: FlaskClient, tmp_path: Path, name: str) -> None:
    upload(client, LAMB)
    (tmp_path / "secret.txt").write_text("secret")
    (tmp_path / "annotator" / "link.txt").symlink_to(tmp_path / "secret.txt")
    (tmp_path / "annotator" / "folder").mkdir()
    response = client.get("/file", query_string={"file": name})
    assert response.status_code == 404
    assert response.content_type == "application/problem+json"
    links = {"a": f"http://127.0.0.1:8765/file?file={quote(name)}"}
    assert post(client, "vectorize_documents", [dialog(links)]) == [{}]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        *(("../../x y.txt", "x_y.txt"), (".hidden", "hidden"), ("보고서 2.txt", "2.txt")),
    ],
)
def test_a_name_is_kept_as_far_as_it_can_be_one(client: FlaskClient, sent: str, kept: str) -> None:
    assert upload(client, LAMB, sent).partition("=")[2] == kept
    assert upload(client, LAMB, "보고서").partition("=")[2].isalnum()


def test_an_upload_without_a_file_and_one_too_large_are_problems(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clean(monkeypatch, tmp_path, CALLSLIP_API__MAX_UPLOAD_MB="1")
    client = annotator_wsgi.create_app().test_client()
    for data, status in (
        ({}, 400),
        ({"file": "text"}, 400),
        ({"other": (io.BytesIO(b"x"), "a.txt")}, 400),
        (LARGE, 413),
    ):
        response = client.post("/", data=data, content_type="multipart/form-data; boundary=x")
        assert response.status_code == status
        assert response.content_type == "application/problem+json"


def test_files_go_after_the_days_that_they_are_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clean(monkeypatch, tmp_path, CALLSLIP_ANNOTATOR__KEEP_DAYS="2")
    client = annotator_wsgi.create_app().test_client()
    folder = tmp_path / "annotator"
    for name in ("old.txt", "young.txt"):
        upload(client, LAMB, name)
    os.utime(folder / "old.txt", (time.time() - 3 * 86_400,) * 2)
    (folder / ".swept").unlink()
    upload(client, LAMB, "new.txt")
    assert {path.name for path in folder.iterdir()} == {".swept", "young.txt", "new.txt"}


def vectorize_in_a_process(folder: str, link: str) -> Any:
    os.environ["CALLSLIP_DATA_DIR"] = folder
    return vectorized(annotator_wsgi.create_app().test_client(), {"a": link})


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
        asked = dialog({"a": link}, "thorns", model_info=model)
        (answer,) = post(client, "return_candidates", [asked])
        assert len(answer["candidate_files"]) == 5


def test_the_same_file_sent_by_many_at_once_is_kept_whole(client: FlaskClient) -> None:
    texts = [ROSE * 100, DESERT * 100]
    with ThreadPoolExecutor(8) as threads:
        links = list(threads.map(lambda i: upload(client, texts[i % 2]), range(16)))
    for i, link in enumerate(links):
        assert downloaded(client, link).text == texts[i % 2]


def test_a_matrix_that_is_something_else_is_no_model(client: FlaskClient) -> None:
    text = upload(client, LAMB)
    for content in (b"", b"PK\x03\x04", bytes(1000), LAMB.encode()):
        link = upload(client, content, "m.npz")
        model = {"matrix_link": link, "db_link": link, "file_ids": ["a"]}
        asked = dialog({"a": text}, "lamb", model_info=model)
        assert post(client, "return_candidates", [asked]) == [{}]


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


def test_the_running_desk_serves_it_beside_its_page(client: FlaskClient) -> None:
    desk = create_app().test_client()
    link = upload(desk, LAMB)
    assert candidates(desk, {"a": link}, "lamb") == [{"candidate_files": ["1.txt"]}]
    response = desk.post("/", headers={"Origin": "http://elsewhere"})
    assert response.status_code == 403


def test_the_key_of_the_desk_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    clean(monkeypatch, tmp_path, CALLSLIP_API__KEY="long-enough")
    client = annotator_wsgi.create_app().test_client()
    for method, path in (
        *(("POST", "/"), ("GET", "/file?file=a.txt"), ("POST", "/vectorize_documents")),
        *(("POST", "/return_candidates"), ("POST", "/process_and_upload_doc")),
    ):
        assert client.open(path, method=method).status_code == 401
    assert client.get("/healthz").status_code == 200
    assert client.get("/openapi.json", auth=("", "long-enough")).status_code == 200
    assert client.get("/file?file=a.txt", auth=("", "long-enough")).status_code == 404
