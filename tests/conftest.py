"""Fixtures of every test folder, and how the suite is divided among processes (docs/testing.md)."""

import gc
import shutil
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import in_memory
import long_forms
import lost_workers
import open_sockets
import pytest
import schedule
import store_servers
from filelock import FileLock
from hypothesis import settings
from otlp_receiver import OtlpReceiver
from stack import WITHOUT_MODEL, MakeStack, Stack, new_home
from xdist import is_xdist_worker
from xdist.remote import Producer
from xdist.workermanage import WorkerController

# A test file imports some of these before another one names them as a plugin.
pytest.register_assert_rewrite(
    *("agent_fixtures", "annotator_fixtures", "crate_fixtures", "ledger_fixtures"),
    *("openai_fixtures", "store_fixtures"),
)

# No case has a time limit: a busy machine would make it fail.
settings.register_profile("callslip", deadline=None)
settings.load_profile("callslip")

LEXICAL = {
    "CALLSLIP_INGEST__CONCURRENCY": "1",
    "CALLSLIP_INGEST__MAX_BACKLOG": "400",
    "CALLSLIP_INGEST__MAX_BACKLOG_PER_TENANT": "320",
    "CALLSLIP_INGEST__SWEEP_SECONDS": "60",  # nothing may wait for it
}

OBJECTS_BETWEEN_COLLECTIONS = 20_000
"""The tests and what they import are a million objects, which no garbage collection need visit."""

TEMPORARY = pytest.StashKey[Path]()
PART = pytest.StashKey[int | None]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    if config.option.basetemp is None:
        config.stash[TEMPORARY] = folder = in_memory.new_folder()
        config.option.basetemp = str(folder)
    if hasattr(config, "workerinput"):
        config.stash[PART] = config.workerinput["part"]
        Stack.starting = FileLock(Path(config.option.basetemp).with_name("starting.lock"))
    else:
        config.stash[PART] = long_forms.part_of(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    node.workerinput["part"] = node.config.stash[PART]


def pytest_sessionstart() -> None:
    open_sockets.follow()


def pytest_report_header(config: pytest.Config) -> list[str]:
    folder, part = config.stash.get(TEMPORARY, None), config.stash[PART]
    lines = [f"temporary folder: {folder}"] if folder else []
    return lines if part is None else [*lines, long_forms.explained(part)]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if (part := config.stash[PART]) is not None:
        config.hook.pytest_deselected(items=long_forms.without_other_parts(items, part))
    if hasattr(config, "workerinput"):
        schedule.write_groups(items, Path(config.option.basetemp).parent)
        items[:] = schedule.in_order(items)


def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Producer
) -> schedule.GroupScheduling | None:
    if config.option.dist != "load":
        return None  # another one was named
    return schedule.GroupScheduling(config, log, Path(config.option.basetemp))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerController, error: object | None) -> None:
    terminal = node.config.pluginmanager.get_plugin("terminalreporter")
    if error and terminal:
        terminal.write_line(f"\n{lost_workers.end_of(node)}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    try:
        return (yield)
    finally:
        schedule.stop_shared_stack(item, nextitem)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    store_servers.add_to(report)
    if sockets := open_sockets.found():
        report.sections.append(("sockets that nobody closed", sockets))
    return report


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if (part := config.stash[PART]) is not None:
        terminalreporter.write_line(long_forms.explained(part))
    reports = [report for some in terminalreporter.stats.values() for report in some]
    if servers := store_servers.noted(reports):
        terminalreporter.section("servers of the stores")
        terminalreporter.write_line("\n".join(servers))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """What failed tests leave in memory stays until the next run."""
    folder = session.config.stash.get(TEMPORARY, None)
    if folder and exitstatus == pytest.ExitCode.OK:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def models_dir(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all stacks, of all processes of the run, share the prepared model."""
    if not is_xdist_worker(request):
        return tmp_path_factory.mktemp("models")
    models_dir = tmp_path_factory.getbasetemp().with_name("models")
    models_dir.mkdir(exist_ok=True)
    return models_dir


@pytest.fixture(scope="session")
def collector() -> Iterator[OtlpReceiver]:
    """The collector of the spans of `stack`."""
    with OtlpReceiver() as made:
        yield made


@pytest.fixture(scope="session")
def stack(
    tmp_path_factory: pytest.TempPathFactory, models_dir: Path, collector: OtlpReceiver
) -> Iterator[Stack]:
    """One running Callslip for all tests that leave it running; use collections of your own."""
    by_default = {"CALLSLIP_API__PROCESSES": "2", "CALLSLIP_AGENT__READER": "true"}
    by_default |= {"CALLSLIP_INGEST__NICENESS": "10"}
    observed = {"CALLSLIP_TELEMETRY__OTLP_ENDPOINT": collector.url, "CALLSLIP_LOG__FORMAT": "json"}
    stack = Stack(new_home(tmp_path_factory, models_dir), by_default | observed).start()
    yield stack
    stack.stop()


@pytest.fixture(scope="session")
def lexical_stack(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[Stack]:
    """One without a model, for tests of document processing; ingests one document at a time."""
    stack = Stack(new_home(tmp_path_factory, models_dir), WITHOUT_MODEL | LEXICAL).start()
    yield stack
    stack.stop()


@pytest.fixture
def make_stack(tmp_path_factory: pytest.TempPathFactory, models_dir: Path) -> Iterator[MakeStack]:
    """Makes stacks, not started yet, that a test may break; each is stopped at its end."""
    made: list[Stack] = []

    def make(overrides: Mapping[str, str]) -> Stack:
        made.append(Stack(new_home(tmp_path_factory, models_dir), overrides))
        return made[-1]

    yield make
    for stack in made:
        stack.stop()
