"""`callslip up`: one process that runs all processes on one machine, until Ctrl-C."""

import os
import resource
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from callslip.config.keys import variable
from callslip.config.load import Loaded
from callslip.config.settings import ApiSettings, Settings
from callslip.errors import CallslipError, StartError
from callslip.stores.registry import STORES
from callslip.stores.sqlite_logs import empty_logs
from callslip.workers.local_access import FILE, GREETED, private_files
from callslip.workers.supervision import runfile
from callslip.workers.supervision.plan import GUARD, plan
from callslip.workers.supervision.runfile import Process, RunFile
from callslip.workers.supervision.supervisor import Supervisor, stop_on_signals

Echo = Callable[[str], None]

OPEN_FILES = 65_536
"""The most open files that `callslip up` allows each part."""

AfterReady = Callable[[str, bool], None]
"""Called with the server's URL, and True if no call for this folder has completed before."""


def run(loaded: Loaded, echo: Echo, after_ready: AfterReady) -> None:
    """Run every part until Ctrl-C, SIGTERM or SIGHUP; for the main thread only.

    `after_ready` runs in a separate thread once every part is ready. Raises StartError if a part
    cannot start or if Callslip already runs in the folder; no part that was started remains then.
    """
    echo, settings = _whoever_listens(echo), loaded.settings
    data_dir = settings.data_dir.absolute()
    with private_files(), _alone_in(data_dir):
        runfile.end_left(data_dir)
        check_port(settings.api)
        settings, parts = plan(settings, data_dir)
        record = runfile.recorder(_run_file(settings), data_dir, leave_out=GUARD)
        supervisor = Supervisor(parts, data_dir / "logs", echo, record)
        try:
            with stop_on_signals(supervisor):
                stores = [part.name for part in parts if part.name in STORES]
                _run(supervisor, settings, stores, echo, after_ready)
            empty_logs(settings)
        finally:
            runfile.remove(data_dir)


def _run(
    supervisor: Supervisor,
    settings: Settings,
    stores: Sequence[str],
    echo: Echo,
    after_ready: AfterReady,
) -> None:
    begun = time.monotonic()
    allow_open_files()
    echo(f"Starting Callslip in {settings.data_dir}")
    if not settings.models_dir.exists():
        echo("The first start prepares the embedding model, which takes a little longer.")
    greeting = threading.Thread(
        target=_greet, args=(supervisor, settings, echo, after_ready), daemon=True
    )
    with supervisor:
        supervisor.begin()
        _prepare_ledger(settings, echo)
        # The supervisor asks the broker which workers are ready; the parts import meanwhile, too.
        from callslip.tasks.shared.broker import connect
        from callslip.workers.supervision.store_restarts import restart_stores

        if supervisor.start():
            echo(f"Ready after {time.monotonic() - begun:.1f} s")
            greeting.start()
            restart_stores(connect(settings), stores, supervisor.restart)
            supervisor.watch()
        echo("Stopping (Ctrl-C again: at once)")
    if greeting.ident:
        greeting.join(timeout=1.0)  # the process must not end while the thread writes
    echo("Stopped")


def allow_open_files() -> None:
    """Raise the soft limit of open files, up to the hard one, for this process and its parts.

    Chroma has 13 files open for each small collection: with the usual limit of 1024 it hangs while
    an audit reads a hundred of them.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _prepare_ledger(settings: Settings, echo: Echo) -> None:
    """Prepare the ledger before a part uses it, whose import the first parts need not wait for."""
    from callslip.workers.ledger_start import prepare_ledger

    if key := prepare_ledger(settings):
        echo(f"Admin key, also in {settings.data_dir / FILE}: {key}")


def _greet(supervisor: Supervisor, settings: Settings, echo: Echo, after_ready: AfterReady) -> None:
    marker = settings.data_dir / GREETED
    try:
        after_ready(settings.api_url, not marker.exists())
        marker.touch()
    except Exception as error:
        if supervisor.stop_requested:
            return  # the server stopped meanwhile
        if not isinstance(error, CallslipError):
            raise
        echo(f"{error.detail} {error.advice}")


@contextmanager
def _alone_in(data_dir: Path) -> Iterator[None]:
    """Check the folder, then run as the only `callslip up` in it. Raises StartError."""
    _check_folder(data_dir)
    with runfile.locked(data_dir):
        yield


def _check_folder(data_dir: Path) -> None:
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if data_dir.stat().st_uid == os.geteuid():
            data_dir.chmod(0o700)
        tempfile.TemporaryFile(dir=data_dir).close()
    except OSError as error:
        raise StartError(
            f"Nothing can be written in {data_dir}: {error.strerror}.",
            hint=f"Set {variable('data_dir')} to a folder that you may write to.",
        ) from error


def check_port(api: ApiSettings) -> None:
    """Raise StartError if the server cannot listen at the host and port."""
    family = socket.AF_INET6 if ":" in api.host else socket.AF_INET
    try:
        socket.create_server((api.host, api.port), family=family).close()
    except OSError as error:
        raise StartError(
            f"The server cannot listen on port {api.port} of {api.host}: {error.strerror}.",
            hint=f"Set {variable('api.port')} or --port to another port; 0 takes a free one.",
        ) from error


def _run_file(settings: Settings) -> RunFile:
    url, tenant = settings.chroma.url, settings.chroma.tenant
    return RunFile(
        Process.of(os.getpid()),
        settings.api_url,
        str(settings.broker.url),
        url,
        chroma_tenant=None if tenant is None else tenant.get_secret_value(),
    )


def _whoever_listens(echo: Echo) -> Echo:
    """Ignore errors of `echo`: the terminal may be closed, and stopping must still go on."""

    def write(text: str) -> None:
        with suppress(OSError):
            echo(text)

    return write
