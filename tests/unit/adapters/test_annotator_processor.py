"""Documents that a human names become texts on the file server."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from annotator_parts import Pages, clean, downloaded, post, upload, vectorized
from flask.testing import FlaskClient
from loopback import LoopbackServer
from office_files import epub

from callslip.api import annotator_wsgi
from callslip.compat.annotator.chunks import MOST_WORDS

pytest_plugins = ["annotator_fixtures"]
pytestmark = pytest.mark.usefixtures("fresh")

SKILL = "dff_document_qa_llm_skill"
PROSE = "<p>" + "Roses have thorns because they fear tigers. " * 60 + "</p>"


def reply(*documents: str, before: dict[str, Any] | None = None, turns: int = 2) -> dict[str, Any]:
    """A dialog of so many turns whose last utterance names these documents."""
    return {
        "dialog_id": "7ed546db",
        "human_utterances": [{"text": "hi"}] * (turns - 1)
        + [{"text": "read", "attributes": {"documents": list(documents)}}],
        "bot_utterances": [{"text": "hello"}] * (turns - 1),
        "human": {"attributes": before or {}},
    }


def processed(client: FlaskClient, dialog: dict[str, Any], *skills: str) -> dict[str, Any]:
    (answer,) = post(client, "process_and_upload_doc", [dialog], all_prev_active_skills=[skills])
    found: dict[str, Any] = answer["human_attributes"]
    return found


def texts(client: FlaskClient, found: dict[str, Any]) -> list[str]:
    known = found["processed_documents"]
    links = [known[id_]["processed_text_link"] for id_ in found["documents_in_use"]]
    return [downloaded(client, link).text for link in links]


def test_files_of_any_type_become_texts_under_their_names(client: FlaskClient) -> None:
    page = upload(client, f"<h1>Roses</h1>{PROSE}", "rose.html")
    book = upload(client, epub("<h1>The lamb</h1><p>It sleeps in a box.</p>"), "lamb.epub")
    found = processed(client, reply(page, book, page))
    known, in_use = found["processed_documents"], found["documents_in_use"]
    assert [known[id_]["initial_path_or_link"] for id_ in in_use] == [page, book]
    assert [known[id_]["filename"] for id_ in in_use] == ["rose", "lamb"]
    assert list(found["documents_combination_ids"].values()) == [in_use]
    assert all(id_.endswith("_7ed546db") for id_ in (*in_use, *found["documents_combination_ids"]))
    rose, lamb = texts(client, found)
    assert rose.startswith("***FILENAME: rose***\nRoses\n")
    assert max(len(line.split()) for line in rose.split("\n")) <= MOST_WORDS
    assert "It sleeps in a box." in lamb
    links = {id_: known[id_]["processed_text_link"] for id_ in in_use}
    assert vectorized(client, links)["file_ids"] == in_use


def test_a_document_is_processed_once(client: FlaskClient) -> None:
    one, two = upload(client, "one", "one.txt"), upload(client, "two", "two.txt")
    first = processed(client, reply(one))
    assert first["documents_combination_ids"] == {}
    assert processed(client, reply(one, before=first)) == first
    both = processed(client, reply(two, one, before=first))
    assert both["processed_documents"].items() > first["processed_documents"].items()
    assert both["documents_in_use"][1:] == first["documents_in_use"]
    again = processed(client, reply(one, before=both))
    assert again["documents_in_use"] == first["documents_in_use"]
    assert again["processed_documents"] == both["processed_documents"]
    assert processed(client, reply(before=both)) == both
    assert processed(client, reply(before=both, turns=1))["documents_in_use"] == []


def test_documents_that_no_skill_talked_about_are_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clean(monkeypatch, tmp_path, N_TURNS_TO_KEEP_DOC="2")
    client = annotator_wsgi.create_app().test_client()
    link = upload(client, "one", "one.txt")
    found = processed(client, reply(link), "chat", "chat")
    for skills, kept in (
        *((("chat", SKILL), True), ((SKILL, "chat"), True), (("chat",), True), ((), True)),
        *(((SKILL, "chat", "chat"), False), (("chat", "chat"), False)),
    ):
        assert bool(processed(client, reply(before=found), *skills)["documents_in_use"]) is kept
    assert processed(client, reply(link, before=found), "chat", "chat") == found


def test_files_of_this_machine_are_read_for_the_settings_and_never_for_a_dialog(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, other = tmp_path / "manual.txt", tmp_path / "secret.txt"
    path.write_text("Press the button.")
    other.write_text("A secret.")
    with LoopbackServer(Pages) as server:
        link = f"http://127.0.0.1:{server.server_port}/away"
        clean(monkeypatch, tmp_path, DOC_PATHS_OR_LINKS=f"{path},{link}")
        client = annotator_wsgi.create_app().test_client()
        found = processed(client, reply())
        assert [text.split("\n")[:2] for text in texts(client, found)] == [
            ["***FILENAME: manual***", "Press the button."],
            ["***FILENAME: text***", "A fox lives in the field."],
        ]
    for hostile in (str(other), f"file://{other}", "../secret.txt", "/etc/passwd"):
        assert post(client, "process_and_upload_doc", [reply(hostile)]) == [{}]
    path.unlink()
    assert processed(client, reply(before=found))["documents_in_use"] == found["documents_in_use"]


def test_a_file_that_cannot_be_read_spoils_no_other_dialog(client: FlaskClient) -> None:
    good = upload(client, "good", "good.txt")
    bad = [upload(client, bytes(range(256)) * 9, "x.pdf"), upload(client, b"", "empty.txt")]
    bad += [f"{good}x", "http://127.0.0.1:8765/file?file=gone.txt"]
    answers = post(client, "process_and_upload_doc", [reply(good), *map(reply, bad), reply(good)])
    assert [bool(answer) for answer in answers] == [True, False, False, False, False, True]


@pytest.mark.parametrize("skills", [None, 7, {}, "x", [7], [None, {}], [[[]]], [[7, None]]])
def test_skills_of_another_shape(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, skills: Any
) -> None:
    clean(monkeypatch, tmp_path, N_TURNS_TO_KEEP_DOC="1")
    client = annotator_wsgi.create_app().test_client()
    response = client.post(
        "/process_and_upload_doc",
        data=json.dumps({"dialogs": [reply()] * 2, "all_prev_active_skills": skills}),
        content_type="application/json",
    )
    assert response.status_code == (200 if isinstance(skills, list) else 400)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_what_has_no_json_is_not_handed_back(client: FlaskClient, number: str) -> None:
    good = upload(client, "good", "good.txt")
    bad = reply(good, before={"processed_documents": {"a": {"size": "HERE"}}})
    response = client.post(
        "/process_and_upload_doc",
        data=json.dumps({"dialogs": [bad, reply(good)]}).replace('"HERE"', number),
        content_type="application/json",
    )
    first, second = json.loads(response.data, parse_constant=pytest.fail)
    assert first == {}
    assert second["human_attributes"]["documents_in_use"]


def test_dialogs_that_a_slow_batch_does_not_come_to_are_left(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with LoopbackServer(Pages) as server:
        base = f"http://127.0.0.1:{server.server_port}"
        clean(monkeypatch, tmp_path, FILE_SERVER_URL=base, FILE_SERVER_TIMEOUT=".3")
        client = annotator_wsgi.create_app().test_client()
        began = time.monotonic()
        slow = reply(f"{base}/file?file=mute.1")
        assert post(client, "process_and_upload_doc", [slow] * 60) == [{}] * 60
        assert time.monotonic() - began < 3
    assert "dialog 59 of the batch: the others took 1.2 s" in caplog.text
    assert "dialog 0 of the batch: source-down" in caplog.text


def test_one_slow_dialog_does_not_hold_up_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with LoopbackServer(Pages) as server:
        base = f"http://127.0.0.1:{server.server_port}"
        clean(monkeypatch, tmp_path, FILE_SERVER_URL=base, FILE_SERVER_TIMEOUT="1.5")
        client = annotator_wsgi.create_app().test_client()
        began = time.monotonic()
        slow = reply(*(f"{base}/file?file=mute.{i}" for i in range(9)))
        assert post(client, "process_and_upload_doc", [slow] * 4) == [{}] * 4
        assert time.monotonic() - began < 4
