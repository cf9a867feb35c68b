"""`callslip audit` beside a running Callslip."""

import json
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from api_calls import Api
from stack import Stack

from callslip.stores.registry import make_store

TEXT = "The boiler is in the cellar. A janitor lights it at six in the morning."


@pytest.fixture
def setup(stack: Stack) -> Api:
    """A collection of this test's own."""
    return Api(stack)


def callslip(stack: Stack, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command as a person types it on this data."""
    return subprocess.run(
        (str(Path(sys.executable).with_name("callslip")), *arguments),
        env=stack.environ,
        cwd=stack.data_dir,
        capture_output=True,
        text=True,
        check=False,
    )


def audit(stack: Stack, *arguments: str) -> tuple[int, dict[str, Any]]:
    """Exit code and JSON of an audit."""
    ended = callslip(stack, "audit", *arguments, "--json")
    return ended.returncode, json.loads(ended.stdout)


def legs(api: Api) -> dict[str, Any]:
    """Of the first hit of a search for the boiler: which leg found it."""
    hits = api.search("boiler").json()["hits"]
    return (
        {name: retriever for name, retriever in hits[0]["legs"].items() if retriever}
        if hits
        else {}
    )


@pytest.mark.long
def test_chunks_deleted_behind_its_back_are_found_written_again_and_searched(
    stack: Stack, setup: Api
) -> None:
    with setup as api:
        document_id = api.live(text=TEXT, name="boiler")
        code, output = audit(stack, api.collection)
        assert (code, output["findings"]) == (0, [])
        assert set(legs(api)) == {"vector", "keyword"}
        with closing(make_store(stack.settings, "chroma")) as store:
            ids = store.find_ids(api.collection)
            store.delete_chunks(api.collection, ids)
        assert legs(api) == {}

        shown = callslip(stack, "audit", api.collection)
        assert shown.returncode == 1
        assert f"{api.collection} in chroma: the keyword half lacks 3 chunks" in shown.stdout
        assert "callslip audit --repair" in shown.stdout
        code, output = audit(stack, api.collection)
        assert code == 1
        assert [(f["kind"], f["half"], f["ids"]) for f in output["findings"]] == [
            ("missing", "vector", ids),
            ("missing", "keyword", ids),
        ]
        code, output = audit(stack, api.collection, "--repair")
        assert (code, output["left"]) == (0, [])
        assert [f["document_id"] for f in output["repaired"]] == [document_id]
        assert set(legs(api)) == {"vector", "keyword"}
        assert api.settled(document_id)["state"] == "live"
        assert audit(stack, api.collection)[0] == 0


@pytest.mark.long
def test_a_deleted_collection_leaves_a_receipt_and_nothing_for_the_audit(
    stack: Stack, setup: Api
) -> None:
    with setup as api:
        api.live(text=TEXT, name="boiler")
        path = f"/v1/collections/{api.collection}"
        assert api.http.get(f"{path}/receipts").json() == {"receipts": []}
        assert api.http.delete(path).status_code == 202
        until = time.monotonic() + 60
        receipt = None
        while not receipt or not receipt["removed_at"]:
            assert time.monotonic() < until
            time.sleep(0.1)
            receipt = next(iter(api.http.get(f"{path}/receipts").json()["receipts"]), None)
        assert receipt["before"]["documents"] == 1
        assert receipt["before"]["chroma vector"] == receipt["before"]["chroma keyword"] == 3
        assert receipt["before"]["blobs"] == 6
        assert set(receipt["after"].values()) == {0}
        _, output = audit(stack)
        assert api.collection not in json.dumps(output["findings"])


@pytest.mark.long
def test_the_periodic_audit_repairs_by_the_ingest_workers(stack: Stack, setup: Api) -> None:
    with setup as api:
        api.live(text=TEXT, name="boiler")
        with closing(make_store(stack.settings, "chroma")) as store:
            store.delete_chunks(api.collection, store.find_ids(api.collection))
        assert legs(api) == {}
        send = (
            "from callslip.config import get_settings;"
            " from callslip.tasks.composition import Context;"
            " from callslip.workers.app import make_app; make_app('api', Context(get_settings()));"
            " from callslip.tasks.audit import audit_collection;"
            f" audit_collection.apply_async(({api.collection!r},), queue='maintenance')"
        )
        environ = stack.environ | {"CALLSLIP_BROKER__URL": stack.broker_url}
        subprocess.run((sys.executable, "-c", send), env=environ, cwd=stack.data_dir, check=True)
        until = time.monotonic() + 60
        while set(legs(api)) != {"vector", "keyword"}:
            assert time.monotonic() < until, stack.tails()
            time.sleep(0.2)
        log = (stack.data_dir / "logs" / "maintenance.log").read_text()
        assert f"the audit set right: missing of {api.collection}, objects: 3" in log
        assert "boiler" not in log


def test_an_audit_where_nothing_is_kept_says_where_to_run_it(tmp_path: Path) -> None:
    ended = callslip(Stack(tmp_path), "audit")
    assert ended.returncode == 1
    assert "There is no ledger in" in ended.stderr
    assert "CALLSLIP_DATA_DIR" in ended.stderr
    assert not (tmp_path / "ledger.db").exists()
