"""Moving collections with the command, on real stores: in use, and killed half-way."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from api_calls import Api
from chroma_server import TENANT, chroma_server, chroma_settings
from long_forms import ALL
from moving import COLLECTION, Site, run_out, schema
from processes import waits_until
from stack import MakeStack, Stack

from callslip.config.settings import Settings
from callslip.stores.registry import STORES, make_store

needs_two = pytest.mark.skipif("tfidf" not in STORES, reason="a move needs a second kind of store")

DOCUMENTS = 40 if ALL else 20
HALF_BYTES = 3750 * DOCUMENTS
"""Of an archive of them, after which its export is killed."""


def run(environ: dict[str, str], *arguments: str) -> dict[str, Any]:
    """Run the command to its end."""
    done = subprocess.run(
        _command(*arguments), env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    output: dict[str, Any] = json.loads(done.stdout)
    return output


def killed(environ: dict[str, str], when: Callable[[], object], *arguments: str) -> None:
    """Run the command and SIGKILL it when something is so."""
    process = subprocess.Popen(
        _command(*arguments), env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 120
    while not when():
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()


def _command(*arguments: str) -> tuple[str, ...]:
    return (str(Path(sys.executable).with_name("callslip")), *arguments, "--json")


# Killed


@pytest.fixture(scope="module")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("chroma")) as (url, _):
        yield url


@pytest.fixture
def sites(chroma: str, tmp_path: Path) -> Iterator[Callable[[str], Site]]:
    """Installations without anything that runs but Chroma; their folder is the settings'."""
    with ExitStack() as stack:

        def make(name: str) -> Site:
            folder = tmp_path / name
            folder.mkdir()
            settings: Settings = chroma_settings(chroma, folder)
            stores = {
                kind: stack.enter_context(closing(make_store(settings, kind)))
                for kind in ("chroma", "tfidf")
                if kind in STORES
            }
            made = Site(folder, stores)
            stack.callback(made.ledger.close)
            return made

        yield make


@pytest.fixture
def environ(chroma: str) -> dict[str, str]:
    """What every command sees, but for its data."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CALLSLIP_")}
    return {**kept, "CALLSLIP_CHROMA__URL": chroma, "CALLSLIP_CHROMA__TENANT": TENANT}


def filled(site: Site) -> Site:
    """With two tenants' documents, some of more than one version."""
    site.make(tenants=True, store="chroma")
    for n in range(DOCUMENTS // 2):
        for tenant in ("서울시 A/1", "서울시 a/1"):
            site.publish(f"{n}", " ".join(f"word{n}x{i}" for i in range(12)), tenant=tenant)
    site.publish("0", "word0x0 now other words", tenant="서울시 a/1")
    return site


@pytest.mark.long
def test_an_export_and_an_import_that_were_killed_are_finished_by_the_same_commands(
    sites: Callable[[str], Site], environ: dict[str, str], tmp_path: Path
) -> None:
    here = filled(sites("here"))
    path, partial = tmp_path / "papers.tar", tmp_path / "papers.tar.partial"
    ours = {**environ, "CALLSLIP_DATA_DIR": str(here.folder)}
    export = ("export", COLLECTION, str(path))
    killed(ours, lambda: partial.exists() and partial.stat().st_size > HALF_BYTES, *export)
    assert not path.exists()
    output = run(ours, *export)
    assert 0 < output["skipped"] < DOCUMENTS
    assert output["documents"] == DOCUMENTS
    before = here.state()
    here.ledger.collections.delete(COLLECTION)
    here.stores["chroma"].drop_collection(COLLECTION)

    there = sites("there")
    theirs = {**environ, "CALLSLIP_DATA_DIR": str(there.folder)}
    take = ("import", str(path))
    killed(theirs, lambda: len(there.ledger.transcripts.ids(COLLECTION)) > DOCUMENTS // 3, *take)
    output = run(theirs, *take)
    assert 0 < output["skipped"] < DOCUMENTS
    assert output["documents"] == DOCUMENTS
    assert output["probes"]["vector"]["overlap@10"] >= 0.9
    assert output["probes"]["keyword"]["overlap@10"] == 1
    assert there.state() == before


@pytest.mark.long
@needs_two
def test_a_move_that_was_killed_is_finished_by_the_same_command_there_and_back(
    sites: Callable[[str], Site], environ: dict[str, str]
) -> None:
    site = filled(sites("here"))
    before = site.state()
    ours = {**environ, "CALLSLIP_DATA_DIR": str(site.folder)}
    ours["CALLSLIP_SEARCH__TIMEOUT_SECONDS"] = "0.1"
    for source, target in (("chroma", "tfidf"), ("tfidf", "chroma")):
        command = ("migrate", COLLECTION, "--to", target)

        def half(target: str = target) -> bool:
            copied = DOCUMENTS - len(site.ledger.moves.stale(COLLECTION, target))
            return copied > DOCUMENTS // 3

        killed(ours, half, *command)
        assert site.ledger.collections.get(COLLECTION).store == source
        if not ALL:
            run_out(site)  # the import waits for a lease in every run
        output = run(ours, *command)
        assert output["documents"] == DOCUMENTS
        assert output["probes"]["vector"]["overlap@10"] >= 0.9
        assert site.ledger.collections.get(COLLECTION).store == target
        assert site.state() == before
        assert site.stores[source].collections() == []


# In use


def environ_of(stack: Stack) -> dict[str, str]:
    """What a terminal has beside `callslip up`; the old copy is dropped a little sooner."""
    return {**stack.environ, "CALLSLIP_SEARCH__TIMEOUT_SECONDS": "2"}


@pytest.mark.long
@needs_two
def test_a_collection_moves_while_it_is_searched_and_documents_come_and_go(stack: Stack) -> None:
    with Api(stack) as api:
        texts = [(f"{n}", f"The number of the house is zebra{n}.") for n in range(12)]
        ids = api.all_live({"name": name, "text": text} for name, text in texts)
        stop = threading.Event()
        faults: list[str] = []
        sent: list[str] = []

        def search() -> None:
            with Api(stack) as other:
                while not stop.is_set():
                    found = other.search("zebra3", collection=api.collection, alpha=0)
                    if found.status_code != 200 or not found.json()["hits"]:
                        faults.append(found.text)
                    time.sleep(0.15)

        def send() -> None:
            n = 100
            while not stop.is_set():
                n += 1
                answer = api.send(text=f"The number of the house is zebra{n}.", name=f"{n}")
                sent.append(answer.json()["document_id"])
                if n % 3 == 0:
                    api.http.delete(f"/v1/documents/{sent.pop(0)}")
                time.sleep(1.5)

        threads = [threading.Thread(target=work) for work in (search, send)]
        for thread in threads:
            thread.start()
        try:
            for target in ("tfidf", "chroma"):
                output = run(environ_of(stack), "migrate", api.collection, "--to", target)
                assert output["documents"] >= 12
            output = run(environ_of(stack), "reindex", api.collection)
            assert output["documents"] >= 12
            assert output["probes"]["vector"]["overlap@10"] >= 0.9
            assert output["probes"]["keyword"]["same_first"] == 1
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert faults == []
        for document_id in sent:
            assert api.settled(document_id)["state"] == "live"
        listed = api.http.get("/v1/collections").json()["collections"]
        assert {c["name"]: c["store"] for c in listed}[api.collection] == "chroma"
        for document_id in (*ids, *sent):
            name = api.http.get(f"/v1/documents/{document_id}").json()["name"]
            hits = api.search(f"zebra{name}", alpha=0).json()["hits"]
            assert hits, name
            assert hits[0]["document_id"] == document_id


@pytest.mark.long
def test_an_archive_of_a_running_installation_answers_alike_in_another(
    stack: Stack, make_stack: MakeStack, tmp_path: Path
) -> None:
    with Api(stack) as api:
        texts = [(f"{n}", f"The number of the house is zebra{n}.") for n in range(3)]
        api.all_live({"name": name, "text": text} for name, text in texts)
        path = str(tmp_path / "houses.tar")
        output = run(environ_of(stack), "export", api.collection, path)
        assert (output["documents"], output["left_out"]) == (3, 0)
        wanted = api.search("what is the number of the house?").json()["hits"]
        other = make_stack({}).start()
        output = run(environ_of(other), "import", path, "--as", "houses")
        agree = {"probes": 3, "overlap@10": 1.0, "same_first": 1.0, "itself_first": [1.0, 1.0]}
        assert output["probes"]["vector"] == {**agree, "recall@10": [1.0, 1.0]}
        with Api(other) as there:
            got = there.search("what is the number of the house?", collection="houses").json()[
                "hits"
            ]
            assert [h["chunk_id"] for h in got] == [h["chunk_id"] for h in wanted]
            text = there.http.get(f"/v1/documents/{got[0]['document_id']}/text").json()["text"]
            assert text[got[0]["span"]["start"] : got[0]["span"]["end"]] == got[0]["text"]
            answer = there.http.post(
                "/v1/collections/houses/documents",
                json={"name": "0", "text": "The number of the house is giraffe."},
            )
            assert answer.json()["version"] == 2
            assert there.settled(answer.json()["document_id"])["state"] == "live"
            hits = there.search("giraffe", collection="houses", alpha=0).json()["hits"]
            assert len(hits) == 1
            assert waits_until(
                lambda: not there.search("zebra0", collection="houses", alpha=0).json()["hits"]
            )


def test_without_a_server_it_is_said_what_to_do(tmp_path: Path) -> None:
    kept = {k: v for k, v in os.environ.items() if not k.startswith("CALLSLIP_")}
    site = Site(tmp_path)
    site.ledger.collections.create(schema(), store="chroma", embedder="tiny", analyzer="1")
    site.ledger.close()
    done = subprocess.run(
        _command("export", COLLECTION, str(tmp_path / "a.tar")),
        env={**kept, "CALLSLIP_DATA_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "chroma.url is not set" in done.stderr
    assert "callslip up" in done.stderr
