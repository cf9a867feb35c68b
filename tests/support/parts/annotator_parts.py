"""Dialogs, a file server of another make and pages that answer badly, for annotator tests."""

import io
import json
import os
from base64 import b64decode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from flask.testing import FlaskClient

from callslip.config import get_settings
from callslip.config.sections.annotator import VARIABLES

LAMB = "The boy took a pencil and drew a lamb.\nThe prince wants to see it.\n"
ROSE = "Roses have thorns because they fear tigers.\n" * 20
DESERT = "What makes the desert beautiful is that it hides a well somewhere.\n" * 20


def clean(monkeypatch: pytest.MonkeyPatch, folder: Path, **variables: str) -> None:
    """Settings of these variables alone; files lie in the folder."""
    for name in [name for name in os.environ if name.startswith("CALLSLIP_")]:
        monkeypatch.delenv(name)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CALLSLIP_DATA_DIR", str(folder))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    get_settings.cache_clear()


def own_settings(
    monkeypatch: pytest.MonkeyPatch, folder: Path, caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    """Settings of each test's own; whatever is sent, no error but those with a name is met."""
    clean(monkeypatch, folder)
    yield
    get_settings.cache_clear()
    assert [record.exc_text for record in caplog.records if record.exc_info] == []


def upload(client: FlaskClient, content: str | bytes, name: str = "a.txt") -> str:
    """The link to a file that was sent to the file server."""
    data = content.encode() if isinstance(content, str) else content
    response = client.post("/", data={"file": (io.BytesIO(data), name)})
    assert response.status_code == 200
    link: str = response.json["downloadLink"]
    return link


def attributes(links: dict[str, str], **more: Any) -> dict[str, Any]:
    """Those of a human whose documents, by id, have these links."""
    processed = {
        id_: {"initial_path_or_link": link, "processed_text_link": link, "filename": id_}
        for id_, link in links.items()
    }
    return {"documents_in_use": list(links), "processed_documents": processed, **more}


def dialog(links: dict[str, str], request: str = "", **more: Any) -> dict[str, Any]:
    """A dialog about these documents."""
    return {
        "dialog_id": "7ed546db-98",
        "human_utterances": [{"text": request}],
        "human": {"attributes": attributes(links, **more)},
    }


def post(client: FlaskClient, path: str, dialogs: Any, **more: Any) -> Any:
    """What is answered for a batch."""
    response = client.post(
        f"/{path}", data=json.dumps({"dialogs": dialogs, **more}), content_type="application/json"
    )
    assert response.status_code == 200, response.text
    return response.json


def downloaded(client: FlaskClient, link: str) -> Any:
    """The answer of the file server."""
    response = client.get(link.removeprefix("http://127.0.0.1:8765"), buffered=True)
    response.close()
    return response


def vectorized(client: FlaskClient, links: dict[str, str]) -> dict[str, Any]:
    """The model of documents."""
    (answer,) = post(client, "vectorize_documents", [dialog(links)])
    model: dict[str, Any] = answer["human_attributes"]["model_info"]
    return model


def candidates(client: FlaskClient, links: dict[str, str], request: str) -> Any:
    """What is answered to a question about documents."""
    model = vectorized(client, links)
    return post(client, "return_candidates", [dialog(links, request, model_info=model)])


class Pages(BaseHTTPRequestHandler):
    """Answers badly, in the way that the path says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = urlsplit(self.path)
        name = parse_qs(path.query).get("file", [path.path.strip("/")])[0]
        getattr(self, f"_{name.partition('.')[0]}", self._missing)()

    def _text(self) -> None:
        self._whole(b"A fox lives in the field.\n", "text/plain")

    def _named(self) -> None:
        self.send_response(200)
        self.send_header("Content-Disposition", 'attachment; filename="../fox tale.txt"')
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"A fox.")

    def _html(self) -> None:
        self._whole(
            b"<html><body><p>A fox on a page.</p></body></html>", "text/html; charset=utf-8"
        )

    def _binary(self) -> None:
        self._whole(bytes(range(256)) * 20, "application/octet-stream")

    def _error(self) -> None:
        self.send_error(500)

    def _missing(self) -> None:
        self.send_error(404)

    def _away(self) -> None:
        self.send_response(302)
        self.send_header("Location", "/file?file=text.txt")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _loop(self) -> None:
        self.send_response(302)
        self.send_header("Location", self.path)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _slow(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000000")
        self.end_headers()
        while not self.server.ending.wait(0.05):  # type: ignore[attr-defined]
            self.wfile.write(b"a")

    def _mute(self) -> None:
        self.server.ending.wait()  # type: ignore[attr-defined]

    def _huge(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(10**9))
        self.end_headers()
        block = b"many words " * 10_000
        for _ in range(10**9 // len(block)):
            self.wfile.write(block)

    def _whole(self, body: bytes, media: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", media)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class FileServer(BaseHTTPRequestHandler):
    """A file server like the original's; `server.files` holds what was sent, `server.users` who."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        mark = self.headers["Content-Type"].partition("boundary=")[2].encode()
        head, _, content = body.split(b"--" + mark)[1].partition(b"\r\n\r\n")
        name = head.partition(b'filename="')[2].partition(b'"')[0].decode()
        self.server.files[name] = content.removesuffix(b"\r\n")  # type: ignore[attr-defined]
        self._answer(json.dumps({"downloadLink": f"http://elsewhere/file?file={name}"}).encode())

    def do_GET(self) -> None:
        user = self.headers.get("Authorization", " ").partition(" ")[2]
        self.server.users.append(b64decode(user).decode())  # type: ignore[attr-defined]
        name = parse_qs(urlsplit(self.path).query)["file"][0]
        self._answer(self.server.files[name])  # type: ignore[attr-defined]

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""
