"""`callslip up`: the whole of Callslip, started, broken and stopped."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from processes import is_gone, waits_until
from stack import WITHOUT_MODEL, MakeStack, Stack

from callslip.cli.shared.server import running_url
from callslip.stores.ledger import Ledger
from callslip.workers.local_access import read_key
from callslip.workers.supervision import forking, runfile

ROLES = ("ingest", "search", "answer", "maintenance", "api")


def api(stack: Stack) -> httpx.Client:
    key = read_key(stack.data_dir)
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.Client(base_url=stack.url, timeout=30, trust_env=False, headers=headers)


def test_everything_is_ready_and_found_from_another_shell(stack: Stack) -> None:
    with api(stack) as client:
        assert client.get("/readyz").status_code == 200
    assert running_url(stack.settings) == stack.url
    forking_parts = {"forkserver"} if forking.is_supported() else set()
    assert set(stack.running.parts) == forking_parts | {
        *("valkey", "chroma", "ingest", "search", "answer", "maintenance", "api")
    }
    for name in stack.running.parts:
        assert (stack.data_dir / "logs" / f"{name}.log").exists()


def test_searches_go_before_answers_and_these_before_ingestion(stack: Stack) -> None:
    niceness = {role: os.getpriority(os.PRIO_PROCESS, stack.pids(role)[0]) for role in ROLES}
    assert niceness["ingest"] > niceness["answer"] > niceness["search"]
    assert {os.getsid(stack.pids(role)[0]) for role in ROLES} == {os.getsid(stack.process.pid)}


def test_a_second_start_in_the_same_folder_says_who_runs_there(stack: Stack) -> None:
    second = Stack(stack.data_dir, {})
    second.output = stack.data_dir / "second.out"
    second.launch()
    assert second.process.wait() == 1
    assert second.says(f"process {stack.process.pid} at {stack.url}")
    assert stack.process.poll() is None


def test_a_killed_worker_is_started_again(stack: Stack) -> None:
    before = stack.running.parts["maintenance"].pid
    stack.kill("maintenance")
    stack.wait_until_back("maintenance")
    assert stack.running.parts["maintenance"].pid != before
    assert stack.says("maintenance  ended by signal 9")


@pytest.mark.long
def test_stopped_or_killed_it_leaves_no_process_and_started_again_it_remembers(
    make_stack: MakeStack,
) -> None:
    stack = make_stack(WITHOUT_MODEL | {"CALLSLIP_API__OPEN": "false"}).start()
    with api(stack) as client:
        assert client.post("/v1/collections", json={"name": "remembered"}).is_success
        assert client.get("/v1/collections", headers={"Authorization": ""}).status_code == 401
        assert (
            client.get("/v1/collections", headers={"Authorization": "Bearer x"}).status_code == 401
        )
    assert stack.says(read_key(stack.data_dir) or "no key")
    family = stack.family()
    stack.process.send_signal(signal.SIGINT)
    assert stack.process.wait() == 0
    assert all(map(is_gone, family))
    assert runfile.read(stack.data_dir) is None
    assert "remembered" in collections_after_start(stack)
    with closing(Ledger(stack.settings.ledger_url)) as ledger:
        actions = [row.entry.action for row in ledger.audit_log.rows()]
        assert "POST collections.create_collection" in actions
        assert "wrong key" in actions
        assert ledger.audit_log.verify().fault is None
        assert [key.name for key in ledger.api_keys.all()] == ["admin"]

    family = stack.family()
    stack.process.kill()
    stack.process.wait()
    assert waits_until(lambda: all(map(is_gone, family)))
    assert "remembered" in collections_after_start(stack)


def collections_after_start(stack: Stack) -> list[str]:
    stack.start()
    with api(stack) as client:
        return [found["name"] for found in client.get("/v1/collections").json()["collections"]]


def test_a_taken_port_is_named_with_the_setting(make_stack: MakeStack) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        stack = make_stack({"CALLSLIP_API__PORT": str(port)})
        stack.launch()
        assert stack.process.wait() == 1
    assert stack.says(f"port {port} of 127.0.0.1")
    assert stack.says("CALLSLIP_API__PORT")
    assert not stack.says("Traceback")


@pytest.mark.long
def test_a_part_that_cannot_start_is_named_and_nothing_is_left(make_stack: MakeStack) -> None:
    stack = make_stack({})
    saved = stack.data_dir / "valkey" / "dump.rdb"
    saved.parent.mkdir(parents=True)
    saved.write_text("nothing that Valkey saved\n")
    stack.launch()
    family = stack.family()
    while stack.process.poll() is None:
        family += stack.family()
    assert stack.process.wait() == 1
    assert stack.says("valkey ended with exit code 1")
    assert stack.says(str(stack.data_dir / "logs" / "valkey.log"))
    assert not stack.says("Traceback")
    assert all(map(is_gone, family))


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, make_stack: MakeStack) -> None:
    file = tmp_path / "file"
    file.touch()
    stack = make_stack({"CALLSLIP_DATA_DIR": str(file)})
    stack.launch()
    assert stack.process.wait() == 1
    assert stack.says(f"Nothing can be written in {file}")
    assert stack.says("CALLSLIP_DATA_DIR")


@pytest.fixture(scope="module")
def borrowing(
    stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Stack, int, dict[str, object]]]:
    """A stack with the servers of another one, its process, and what that printed for a program."""
    scopes = {
        "CALLSLIP_BROKER__URL": stack.broker_url[:-1] + "1",
        "CALLSLIP_CHROMA__URL": stack.chroma_url,
        "CALLSLIP_CHROMA__TENANT": stack.running.chroma_tenant or "",
    }
    second = Stack(tmp_path_factory.mktemp("borrowing"), WITHOUT_MODEL | scopes)
    command = (str(second.callslip), "up", "--no-examples", "--json")
    with subprocess.Popen(
        command,
        env=second.environ,
        cwd=second.cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout
        try:
            printed = b""
            while not printed.endswith(b"}\n"):
                line = process.stdout.readline()
                assert line, "it ended before it was ready"
                printed += line
            yield second, process.pid, json.loads(printed)
        finally:
            process.terminate()


@pytest.mark.long
def test_a_program_is_told_as_json_where_the_server_is(
    borrowing: tuple[Stack, int, dict[str, object]],
) -> None:
    stack, pid, report = borrowing
    assert report == {"url": stack.url, "pid": pid, "examples": None}
    assert httpx.get(f"{report['url']}/readyz", trust_env=False).status_code == 200


@pytest.mark.long
def test_servers_that_are_named_in_the_settings_are_not_started(
    borrowing: tuple[Stack, int, dict[str, object]],
) -> None:
    assert {"valkey", "chroma"}.isdisjoint(borrowing[0].running.parts)
