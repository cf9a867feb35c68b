"""The annotator's file server, and how the service is reached."""

import io
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
from annotator_parts import (
    DESERT,
    LAMB,
    ROSE,
    candidates,
    clean,
    dialog,
    downloaded,
    post,
    upload,
)
from context_parts import app_over
from flask.testing import FlaskClient

from callslip.api import annotator_wsgi
from callslip.config import get_settings
from callslip.errors import SettingsError

pytest_plugins = ["annotator_fixtures"]
pytestmark = pytest.mark.usefixtures("fresh")

LARGE = (
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    + bytes(3_000_000)
    + b"\r\n--x--\r\n"
)


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


def test_the_same_file_sent_by_many_at_once_is_kept_whole(client: FlaskClient) -> None:
    texts = [ROSE * 100, DESERT * 100]
    with ThreadPoolExecutor(8) as threads:
        links = list(threads.map(lambda i: upload(client, texts[i % 2]), range(16)))
    for i, link in enumerate(links):
        assert downloaded(client, link).text == texts[i % 2]


def test_the_running_server_serves_it_beside_its_page(client: FlaskClient) -> None:
    server = app_over().test_client()
    link = upload(server, LAMB)
    assert candidates(server, {"a": link}, "lamb") == [{"candidate_files": ["1.txt"]}]
    response = server.post("/", headers={"Origin": "http://elsewhere"})
    assert response.status_code == 403


@pytest.mark.parametrize("host", ["annotator:8165", "a:b", "[", "x y", "", "a" * 300, "é"])
def test_a_service_for_every_address_goes_by_the_name_that_it_is_called_by(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, host: str
) -> None:
    api = {"CALLSLIP_API__PORT": "8165", "CALLSLIP_API__HOSTS": "annotator"}
    clean(monkeypatch, tmp_path, CALLSLIP_API__HOST="::", **api)
    client = annotator_wsgi.create_app().test_client()
    link = upload(client, LAMB)
    assert link == "http://localhost/file?file=a.txt"
    batch = json.dumps({"dialogs": [dialog({"a": "http://127.0.0.1:8165/file?file=a.txt"})]})
    response = client.post(
        "/vectorize_documents",
        data=batch,
        content_type="application/json",
        headers={"Host": host},
    )
    assert response.status_code in (200, 400, 403)
    if host == "annotator:8165":
        model = response.json[0]["human_attributes"]["model_info"]
        assert model["db_link"].startswith("http://annotator:8165/file?file=")


def test_files_are_kept_here_for_the_address_that_others_know(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clean(
        monkeypatch,
        tmp_path,
        FILE_SERVER_URL="https://files.example/dream/",
        CALLSLIP_ANNOTATOR__OWN_FILES="true",
    )
    client = annotator_wsgi.create_app().test_client()
    link = upload(client, LAMB)
    assert link == "https://files.example/dream/file?file=a.txt"
    assert candidates(client, {"a": link}, "lamb") == [{"candidate_files": ["1.txt"]}]


@pytest.mark.parametrize("url", ["files:3000", "ftp://files", "http://", "http://[", "http://a:b"])
def test_a_file_server_without_an_address_is_a_wrong_setting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, url: str
) -> None:
    clean(monkeypatch, tmp_path, FILE_SERVER_URL=url)
    with pytest.raises(SettingsError, match="FILE_SERVER_URL"):
        get_settings()


def test_the_key_of_the_server_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
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
