"""The limited child: it ends what is too much, is replaced when it dies, and outlives nobody."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import psutil
import pytest

from callslip.config.settings import ExtractSettings
from callslip.errors import BrokenFile, DocumentError, ExtractionLimit
from callslip.ingestion.isolation.process import PASSED_ON, Extractor

PROJECT = Path(__file__).resolve().parents[3]


def readers(process: psutil.Process) -> list[psutil.Process]:
    """The reading children of a process."""
    return [
        c for c in process.children() if c.cmdline()[1:3] == ["-m", "callslip.ingestion.extract"]
    ]


def new_reader(extractor: Extractor) -> psutil.Process:
    """Start the extractor's child and find it."""
    before = readers(psutil.Process())
    assert extractor.extract(b"warm", "a.txt").text == "warm"
    (child,) = (c for c in readers(psutil.Process()) if c not in before)
    return child


@pytest.mark.long
def test_what_takes_too_long_is_ended_and_the_next_file_read() -> None:
    with Extractor(ExtractSettings(timeout_seconds=3.0)) as extractor:
        slow = b"<p>a</p>" * 3_000_000
        with pytest.raises(ExtractionLimit, match=r"slow\.html took longer than 3 s"):
            extractor.extract(slow, "slow.html")
        assert extractor.extract(b"fine", "a.txt").text == "fine"


@pytest.mark.long
def test_what_takes_too_much_memory_is_ended_and_the_next_file_read() -> None:
    with Extractor(ExtractSettings(memory_mb=256)) as extractor:
        with pytest.raises(ExtractionLimit):
            extractor.extract(b"<i>a</i>" * 4_000_000, "large.html")
        assert extractor.extract(b"fine", "a.txt").text == "fine"


def end(child: psutil.Process, number: signal.Signals) -> None:
    child.send_signal(number)
    child.resume()


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "error"),
    [
        (signal.SIGSEGV, BrokenFile),
        (signal.SIGKILL, ExtractionLimit),
        (signal.SIGXCPU, ExtractionLimit),
    ],
)
def test_a_reader_that_dies_is_named_and_replaced(
    number: signal.Signals, error: type[DocumentError]
) -> None:
    with Extractor(ExtractSettings()) as extractor:
        child = new_reader(extractor)
        child.suspend()  # so that it is sure to die in the middle of the file
        ending = threading.Timer(0.3, end, args=(child, number))
        ending.start()
        with pytest.raises(error):
            extractor.extract(b"text", "b.txt")
        ending.join()
        assert extractor.extract(b"fine", "a.txt").text == "fine"


def test_fields_of_json_records_hold_for_one_file() -> None:
    record = b'{"name": "n", "question": "q", "answer": "a"}'
    with Extractor(ExtractSettings()) as extractor:
        own = extractor.extract(record, "a.json", {"json_title": "question", "json_text": "answer"})
        usual = extractor.extract(record, "a.json")
    assert (own.title, own.text.split()) == ("q", ["q", "a"])
    assert (usual.title, usual.text.split("\n\n")[1]) == ("n", "question: q\nanswer: a")


def test_a_reader_that_died_while_idle_is_not_noticed() -> None:
    with Extractor(ExtractSettings()) as extractor:
        child = new_reader(extractor)
        child.kill()
        psutil.wait_procs([child], timeout=10)
        assert extractor.extract(b"fine", "a.txt").text == "fine"


def test_a_child_has_no_secrets_and_closing_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("CALLSLIP_API__KEY", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "secret")
    extractor = Extractor(ExtractSettings())
    child = new_reader(extractor)
    environment = child.environ()
    assert set(environment) - {"PYTHONPATH", "OPENBLAS_NUM_THREADS", "LC_CTYPE"} <= PASSED_ON
    assert environment["PATH"] == os.environ["PATH"]
    extractor.close()
    extractor.close()
    assert not child.is_running()


POOL = """
    import os, sys, time
    from billiard.pool import Pool
    from callslip.config.sections.ingestion import ExtractSettings
    from callslip.ingestion.isolation.process import Extractor

    def read(name):
        extractor = Extractor(ExtractSettings())
        print(os.getpid(), len(extractor.extract(b"five!", name).text), flush=True)
        time.sleep(600)

    if __name__ == "__main__":
        Pool(1).apply(read, ("a.txt",))
"""


def test_it_works_in_a_prefork_child_and_leaves_no_orphan_when_that_is_killed(
    tmp_path: Path,
) -> None:
    script = tmp_path / "pool.py"
    script.write_text(textwrap.dedent(POOL))
    with subprocess.Popen(
        [sys.executable, str(script)],
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
        stdout=subprocess.PIPE,
        text=True,
    ) as main:
        assert main.stdout is not None
        worker, length = main.stdout.readline().split()
        assert length == "5"
        children = readers(psutil.Process(int(worker)))
        assert len(children) == 1
        os.kill(int(worker), signal.SIGKILL)
        _, alive = psutil.wait_procs(children, timeout=20)
        assert alive == []
        for process in psutil.Process(main.pid).children(recursive=True):
            process.kill()
        main.kill()
