"""Where links of a dialog lead, and where they do not."""

import time
from pathlib import Path
from typing import Any

import pytest
from annotator_parts import (
    LAMB,
    FileServer,
    Pages,
    candidates,
    clean,
    dialog,
    post,
    vectorized,
)
from loopback import LoopbackServer

from callslip.api import annotator_wsgi
from callslip.compat.annotator.dialogs import Dialog, answers
from callslip.errors import SourceError

pytest_plugins = ["annotator_fixtures"]
pytestmark = pytest.mark.usefixtures("fresh")


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
        requests = dialog(links, "fox", model_info=model)
        assert post(client, "return_candidates", [requests]) == [{}]
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
    requests = []

    class Watched(Pages):
        def do_GET(self) -> None:  # noqa: N802 - the base class's name
            requests.append(self.path)
            super().do_GET()

    clean(monkeypatch, tmp_path, CALLSLIP_ANNOTATOR__LINKS=allowed, FILE_SERVER_TIMEOUT="2")
    client = annotator_wsgi.create_app().test_client()
    with LoopbackServer(Watched) as server:
        links = {"a": link.format(port=server.server_port)}
        assert post(client, "vectorize_documents", [dialog(links)]) == [{}]
        named = {"human_utterances": [{"attributes": {"documents": [links["a"]]}}]}
        assert post(client, "process_and_upload_doc", [named]) == [{}]
    assert requests == []


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


@pytest.mark.parametrize(
    "output",
    [
        *(b'{"downloadLink": 7}', b'{"downloadLink": ["x"]}', b'{"downloadLink": null}'),
        *(b'{"downloadLink": "http://a/file?file=\\ud800"}', b"[" * 100_000, b"[]", b"7"),
        b'{"downloadLink": ' + b"[" * 100_000,
    ],
)
def test_a_file_server_that_gives_no_link_is_a_named_error(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    output: bytes,
) -> None:
    class Odd(FileServer):
        def do_POST(self) -> None:  # noqa: N802 - the base class's name
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(output)

    with LoopbackServer(Odd) as server:
        server.files, server.users = {"a.txt": LAMB.encode()}, []  # type: ignore[attr-defined]
        base = f"http://me:x@127.0.0.1:{server.server_port}"
        clean(monkeypatch, tmp_path, FILE_SERVER_URL=base)
        client = annotator_wsgi.create_app().test_client()
        links = {"a": f"{base}/file?file=a.txt"}
        assert post(client, "vectorize_documents", [dialog(links)]) == [{}]
        assert "source-down: the file server gives no downloadLink" in caplog.text
        broken = {"a": f"{base}/file?file=\ud800.txt"}
        assert post(client, "vectorize_documents", [dialog(broken)]) == [{}]
    assert "ERROR" not in {record.levelname for record in caplog.records}


def test_the_log_ends_with_the_advice_of_this_case_alone(caplog: pytest.LogCaptureFixture) -> None:
    def refuse(dialog: Dialog) -> dict[str, Any]:
        if dialog.number:
            raise SourceError("a link answered 404")
        raise SourceError("a link leads elsewhere", hint="Upload the file there.")

    assert answers([{}, {}], refuse, 30.0) == [{}, {}]
    reply = sorted(record.getMessage() for record in caplog.records)
    assert reply == [
        "dialog 0 of the batch: source-error: a link leads elsewhere. Upload the file there.",
        "dialog 1 of the batch: source-error: a link answered 404",
    ]
