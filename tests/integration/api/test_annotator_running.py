"""`callslip serve-annotator` as a process, called as the services of Dream call it."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from processes import waits_until

TEXT = "The boy drew a lamb.\n" + "Roses have thorns because they fear tigers.\n" * 60


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def start(folder: Path, port: int, **variables: str) -> "subprocess.Popen[str]":
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CALLSLIP_")}
    return subprocess.Popen(
        [sys.executable, "-m", "callslip.cli", "serve-annotator", "--port", str(port)],
        env={**kept, "CALLSLIP_DATA_DIR": str(folder), **variables},
        stderr=subprocess.PIPE,
        text=True,
    )


def answers(http: httpx.Client) -> bool:
    try:
        return http.get("/healthz").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A running annotator with a key, which its links carry."""
    port = free_port()
    base = f"http://agent:long-enough@127.0.0.1:{port}"
    process = start(
        tmp_path_factory.mktemp("annotator"),
        port,
        FILE_SERVER_URL=base,
        CALLSLIP_API__KEY="long-enough",
    )
    with process, httpx.Client(base_url=base) as http:
        try:
            assert waits_until(lambda: answers(http)), process.poll()
            yield base
        finally:
            process.terminate()
            assert process.wait(15) == 0


@pytest.mark.long
def test_many_clients_at_once_each_get_their_own_answer(url: str) -> None:
    with httpx.Client(base_url=url, timeout=60) as http:

        def talk(number: int) -> Any:
            text = f"{TEXT}\nclient{number}" if number % 2 else f"client{number}\n{TEXT}"
            link = http.post("/", files={"file": ("a.txt", text)}).json()["downloadLink"]
            assert httpx.get(link, timeout=60).text == text  # of eight clients at once
            processed = {"a": {"processed_text_link": link}}
            attributes: dict[str, Any] = {"documents_in_use": ["a"]}
            attributes |= {"processed_documents": processed}
            dialog = {"dialog_id": "the same", "human": {"attributes": attributes}}
            (found,) = http.post("/vectorize_documents", json={"dialogs": [dialog]}).json()
            attributes |= found["human_attributes"]
            dialog["human_utterances"] = [{"text": f"client{number}"}]
            return http.post("/return_candidates", json={"dialogs": [dialog]}).json()

        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(talk, range(24)))
    assert [answer[0]["candidate_files"][0] for answer in found] == ["1.txt", "3.txt"] * 12


def test_nobody_is_answered_without_the_key(url: str) -> None:
    bare = url.replace("agent:long-enough@", "")
    assert httpx.get(f"{bare}/file?file=a.txt").status_code == 401
    assert httpx.post(f"{bare}/return_candidates", json={"dialogs": []}).status_code == 401


@pytest.mark.long
@pytest.mark.parametrize(
    ("variables", "output"),
    [
        ({"PARAGRAPHS_NUM": "many"}, "PARAGRAPHS_NUM"),
        ({"CONFIG_PATH": "/nowhere.json"}, "/nowhere.json"),
        ({"FILE_SERVER_URL": "files:3000"}, "FILE_SERVER_URL"),
        ({"FILE_SERVER_TIMEOUT": "-1"}, "FILE_SERVER_TIMEOUT"),
    ],
)
def test_a_wrong_variable_is_named_before_anything_is_served(
    tmp_path: Path, variables: dict[str, str], output: str
) -> None:
    process = start(tmp_path, free_port(), **variables)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert output in errors
    assert "Traceback" not in errors
