"""A running system, as the driver sees it: requests, memory, processor time, and its death."""

import json
import queue
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil

from callslip.errors import EvaluationError

PATIENCE_SECONDS = 3600.0
"""The longest time without a line from a system."""

STOP_SECONDS = 90.0
SAMPLE_SECONDS = 2.0

Message = dict[str, Any]


class Gone(EvaluationError):
    """The process of a system ended before it responded."""


@dataclass
class Spent:
    """What a system used for some work."""

    processor: float = 0.0
    """Seconds of processor time, of all processes."""
    peak: float = 0.0
    """The most memory at one time, in MB (PSS)."""
    samples: list[float] = field(default_factory=list)


class Running:
    """A system whose process runs. A context, which ends it."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], log: Path) -> None:
        """Start it; return when it is ready. `log` gets what it prints. Raises Gone."""
        self._log, self.acknowledged, self.searchable = log, 0, 0
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                command,
                env=dict(environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
            )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        try:
            self._pid = int(self._next()["pid"])
        except BaseException:
            self.kill()
            self._close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with suppress(OSError):
            self._input.close()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        self._close()

    def request(self, do: str, **arguments: Any) -> Message:
        """Return the response to a request. Raises Gone if the process ends before."""
        self.acknowledged = self.searchable = 0
        try:
            self._input.write(json.dumps({"do": do, **arguments}) + "\n")
            self._input.flush()
        except OSError:
            raise self._gone() from None
        while "done" not in (message := self._next()):
            self.acknowledged, self.searchable = message["acknowledged"], message["searchable"]
        done: Message = message["done"]
        return done

    def kill(self) -> None:
        """Kill all processes of the system at once, as a power failure would."""
        with suppress(psutil.Error):
            leader = psutil.Process(self._process.pid)
            family = [leader, *leader.children(recursive=True)]
            for process in family:
                with suppress(psutil.Error):
                    process.kill()
            psutil.wait_procs(family[1:], timeout=STOP_SECONDS)
        self._process.wait()

    def memory(self) -> float:
        """Return the memory of all processes, in MB of 1,000,000 bytes; shared pages count once."""
        total = 0.0
        for process in self._family():
            with suppress(psutil.Error):
                info = process.memory_full_info()
                total += getattr(info, "pss", info.rss) / 1e6
        return total

    @contextmanager
    def watched(self) -> Iterator[Spent]:
        """Measure what the system uses in the block."""
        spent, ended, before = Spent(), threading.Event(), self._processor()

        def sample() -> None:
            while not ended.wait(SAMPLE_SECONDS):
                spent.samples.append(self.memory())

        thread = threading.Thread(target=sample)
        thread.start()
        try:
            yield spent
        finally:
            ended.set()
            thread.join()
        spent.peak = max([*spent.samples, self.memory()])
        spent.processor = self._processor() - before

    def _close(self) -> None:
        """Close both pipes of a process that ended."""
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    @property
    def _input(self) -> Any:
        return self._process.stdin

    def _family(self) -> list[psutil.Process]:
        try:
            leader = psutil.Process(self._pid)
            return [leader, *leader.children(recursive=True)]
        except psutil.Error:
            return []

    def _processor(self) -> float:
        total = 0.0
        for process in self._family():
            with suppress(psutil.Error):
                used = process.cpu_times()
                total += used.user + used.system + used.children_user + used.children_system
        return total

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.put(line)
        self._lines.put(None)

    def _next(self) -> Message:
        try:
            line = self._lines.get(timeout=PATIENCE_SECONDS)
        except queue.Empty:
            raise EvaluationError(f"no line in {PATIENCE_SECONDS:.0f} s: {self._log}") from None
        if line is None:
            raise self._gone()
        message: Message = json.loads(line)
        return message

    def _gone(self) -> Gone:
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return Gone(f"the process ended; it printed:\n\n{text[-3000:]}")


def disk(folder: Path) -> float:
    """Return what the files of a folder take on disk, in MB; what links lead to does not count."""
    return (
        sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if not path.is_symlink())
        / 1e6
    )
