"""Faults of every kind, each a method of `Faults`, and the seeded schedule of them."""

import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import redis
from documents import Documents
from processes import is_gone, waits_until
from shim import Shim
from stack import Stack

from callslip.tasks.queues import EMBED, INGEST, UPSERT

PARTS = ("valkey", "chroma", "api", "ingest", "search", "answer", "maintenance")

CLOCKS = (-3600.0, -300.0, -30.0, -3.0, 0.0, 3.0, 30.0, 300.0, 3600.0)
"""Seconds by which the stack's clock may be ahead; a jump goes from one of these to another."""

SENT_AGAIN = 20
"""Messages that one fault sends again."""

REMEMBERED = 3000
"""Messages that are remembered, to be sent again later."""

WEIGHTS = {
    **{f"kill {part}": 5 for part in PARTS},
    "kill a process of the pool": 12,
    **{f"stop {part}": 3 for part in PARTS},
    "stop a process of the pool": 5,
    "clock jumps": 22,
    "broker emptied": 18,
    "messages again": 22,
    "store emptied": 7,
    "disk full": 4,
    "poison kills": 4,
    "poison hangs": 3,
    "poison corrupt": 4,
    "restart of all": 3,
    "supervisor killed": 3,
    "power loss": 6,
}
"""How often each kind occurs, relative to the others."""

ALONE = ("restart of all", "supervisor killed", "power loss")
"""Nothing else is under way when one of these begins."""


def schedule(seed: int, count: int, kinds: dict[str, int], most: int) -> list[list[str]]:
    """Rounds of 1 to `most` kinds of faults, `count` in all, each kind in proportion."""
    chance = random.Random(f"faults {seed}")
    total = sum(kinds.values())
    drawn = [kind for kind, weight in kinds.items() for _ in range(weight * count // total)]
    drawn += chance.choices(list(kinds), kinds.values(), k=count - len(drawn))
    chance.shuffle(drawn)
    rounds = []
    while drawn:
        size = chance.randint(1, most)
        rounds.append(drawn[:size])
        del drawn[:size]
    return rounds


class Faults:
    """Makes faults in a stack. Those that last end by themselves, in threads."""

    def __init__(
        self,
        stack: Stack,
        shim: Shim,
        documents: Documents,
        seed: int,
        *,
        clocks: Sequence[float] = CLOCKS,
        disk: Path | None = None,
    ) -> None:
        """`disk` is a disk of the stack's own, which may be filled."""
        self.count: Counter[str] = Counter()
        self.torn_files = 0
        self._stack, self._shim, self._documents, self._disk = stack, shim, documents, disk
        self._random = random.Random(f"details {seed}")
        self._lasting: list[threading.Thread] = []
        self._clock, self._clocks = 0.0, clocks
        self._messages: list[tuple[str, str]] = []

    def unavailable(self) -> dict[str, str]:
        """The kinds that cannot be made here, with the reasons."""
        reasons = {}
        if self._shim.unavailable:
            reasons |= dict.fromkeys(("clock jumps", "power loss"), self._shim.unavailable)
        if self._disk is None:
            reasons["disk full"] = "a tmpfs can only be mounted by root"
        return reasons

    def make(self, kind: str) -> str:
        """Make a fault of this kind; details of it."""
        if kind in ALONE:
            self.wait()
        self.count[kind] += 1
        verb, _, what = kind.partition(" ")
        if verb == "kill" and what in PARTS:
            return self._signal(what, signal.SIGKILL)
        if verb == "stop" and what in PARTS:
            return self._pause(self._group(what), os.killpg)
        if verb == "poison":
            self._documents.add_poison(what)  # type: ignore[arg-type]
            return ""
        others: dict[str, Callable[[], str]] = {
            "kill a process of the pool": self._kill_process,
            "stop a process of the pool": lambda: self._pause(self._process(), os.kill),
            "clock jumps": self._jump,
            "broker emptied": self._flush,
            "messages again": self._send_again,
            "store emptied": self._empty_store,
            "disk full": self._fill_disk,
            "restart of all": self._restart,
            "supervisor killed": self._kill_supervisor,
            "power loss": self._lose_power,
        }
        return others[kind]()

    def wait(self) -> None:
        """Return once every fault that lasts is over."""
        for thread in self._lasting:
            thread.join()
        self._lasting.clear()

    def remember_messages(self) -> None:
        """Copy messages of the queues, to be sent again later."""
        with suppress(redis.RedisError), self._broker() as broker:
            waiting = [
                (q, text) for q in (INGEST, EMBED, UPSERT) for text in broker.lrange(q, 0, 9)
            ]
            taken = [json.loads(value) for value in broker.hvals("unacked")]
            copies = [(queue, text.decode()) for queue, text in waiting]
            copies += [(m[2], json.dumps(m[0])) for m in taken if m[2] in (INGEST, EMBED, UPSERT)]
            self._messages = list(dict.fromkeys([*self._messages, *copies]))[-REMEMBERED:]

    def _broker(self) -> redis.Redis:
        return redis.Redis.from_url(self._stack.broker_url, socket_timeout=2)

    def _group(self, part: str) -> int:
        """The process group of a part, once that runs."""

        def runs() -> bool:
            found = self._stack.running.parts.get(part)
            return found is not None and found.is_alive()

        waits_until(runs, 60)
        return self._stack.running.parts[part].pid

    def _signal(self, part: str, number: signal.Signals) -> str:
        with suppress(ProcessLookupError):
            os.killpg(self._group(part), number)
        return ""

    def _process(self) -> int:
        """A process of the pool of ingest workers."""
        leader = psutil.Process(self._group("ingest"))
        children: list[psutil.Process] = []
        waits_until(lambda: children.extend(leader.children()) or children, 10)
        return self._random.choice(children).pid if children else leader.pid

    def _kill_process(self) -> str:
        with suppress(ProcessLookupError):
            os.kill(self._process(), signal.SIGKILL)
        return ""

    def _pause(self, pid: int, send: Callable[[int, int], None]) -> str:
        seconds = round(
            self._random.choice((0.5, 2.0, 5.0, 20.0)) * self._random.uniform(0.8, 1.2), 1
        )
        with suppress(ProcessLookupError):
            send(pid, signal.SIGSTOP)

        def go_on() -> None:
            time.sleep(seconds)
            with suppress(ProcessLookupError):
                send(pid, signal.SIGCONT)

        self._last(go_on)
        return f"for {seconds} s"

    def _last(self, run: Callable[[], None]) -> None:
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self._lasting.append(thread)

    def _jump(self) -> str:
        before = self._clock
        self._clock = self._random.choice([c for c in self._clocks if c != before])
        self._shim.set_clock(self._clock)
        return f"by {self._clock - before:+.0f} s"

    def _flush(self) -> str:
        with self._broker() as broker:
            for _ in range(20):
                try:
                    broker.flushall()
                    return ""
                except redis.RedisError:  # it is being restarted
                    time.sleep(0.5)
        return "which did not answer"

    def _send_again(self) -> str:
        some = self._random.sample(self._messages, min(SENT_AGAIN, len(self._messages)))
        with suppress(redis.RedisError), self._broker() as broker:
            for queue, text in some:
                message = json.loads(text)
                message["properties"]["delivery_tag"] = str(uuid.uuid4())
                broker.lpush(queue, json.dumps(message))
        return f"{len(some)} of {len(self._messages)}"

    def _empty_store(self) -> str:
        self._signal("chroma", signal.SIGKILL)
        shutil.rmtree(self._stack.data_dir / "chroma", ignore_errors=True)
        return ""

    def _fill_disk(self) -> str:
        assert self._disk
        ballast, seconds = self._disk / "of-another-program", self._random.uniform(3, 12)

        def fill() -> None:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                with suppress(OSError), ballast.open("ab", buffering=0) as file:
                    while True:
                        file.write(b"\0" * (1 << 20))
                time.sleep(0.5)
            ballast.unlink()

        self._last(fill)
        return f"for {seconds:.0f} s"

    def _restart(self) -> str:
        self._stack.stop()
        self._start()
        return "parts killed" if self._stack.says("does not stop, killed") else ""

    def _kill_supervisor(self) -> str:
        self._stack.process.kill()
        self._stack.process.wait()
        self._start()
        return ""

    def _lose_power(self) -> str:
        family = self._stack.family()
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._stack.process.wait()
        assert waits_until(lambda: all(map(is_gone, family)))
        torn = self._shim.lose_power(self._stack.data_dir)
        self.torn_files += torn
        self._start()
        return f"{torn} files torn"

    def _start(self) -> None:
        self._stack.start()
        self._documents.follow(self._stack.url)


@contextmanager
def own_disk(folder: Path, megabytes: int) -> Iterator[Path | None]:
    """A disk of this size at the folder; None where none can be mounted."""
    mount = ("/bin/mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder))
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        yield None
        return
    yield folder
    subprocess.run(("/bin/umount", "--lazy", str(folder)), check=True)
