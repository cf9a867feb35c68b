"""Sets the wall clock of a stack's processes, and drops what they wrote and never synced.

A library that is preloaded into every process of the stack (shim.c) does both. `Shim.unavailable`
says why it cannot be used here.
"""

import shutil
import struct
import subprocess
import time
from pathlib import Path

WRITTEN_BACK_SECONDS = 30.0
"""Linux writes what nobody syncs after this time (vm.dirty_expire_centisecs)."""

NOT_OURS = ("chroma", "valkey", "logs", "models", "cwd")
"""The folders of a data folder whose files are those of other programs, or need not last."""

_RECORD = struct.Struct("=QQQ")
_OFFSET = struct.Struct("=q")


class Shim:
    """The library, the file with its clock's offset, and the file with the syncs of a stack."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._library, self._clock = folder / "shim.so", folder / "clock"
        self._synced = folder / "synced"
        self.unavailable = self._compile()
        self._synced.touch()
        self.set_clock(0.0)

    @property
    def environ(self) -> dict[str, str]:
        """The variables that load the library into a stack; none if it cannot be used."""
        if self.unavailable:
            return {}
        files = {"CHAOS_CLOCK": str(self._clock), "CHAOS_SYNCED": str(self._synced)}
        return {"LD_PRELOAD": str(self._library)} | files

    def set_clock(self, seconds: float) -> None:
        """From now on the wall clock of the stack is ahead by these seconds, or behind."""
        with self._clock.open("r+b" if self._clock.exists() else "wb") as file:
            file.write(_OFFSET.pack(round(seconds * 1e9)))

    def lose_power(self, data_dir: Path) -> int:
        """Drop what files of Callslip got in the last seconds and never synced.

        A file loses the bytes behind its end at its last sync, and all if it was never synced: so
        does a file system that writes names before contents. Bytes that replaced others in the
        middle of a file stay, and so do names. No process of the stack may run. The number of files
        that lost something.
        """
        ends: dict[tuple[int, int], int] = {}
        records = self._synced.read_bytes()
        for device, inode, size in _RECORD.iter_unpack(records[: len(records) // 24 * 24]):
            ends[device, inode] = size
        lost = 0
        for file in data_dir.rglob("*"):
            if file.relative_to(data_dir).parts[0] in NOT_OURS or not file.is_file():
                continue
            status = file.stat()
            if time.time() - status.st_mtime > WRITTEN_BACK_SECONDS:
                continue
            end = ends.get((status.st_dev, status.st_ino), 0)
            if status.st_size > end:
                with file.open("r+b") as torn:
                    torn.truncate(end)
                lost += 1
        return lost

    def _compile(self) -> str:
        if shutil.which("gcc") is None:
            return "there is no gcc to compile tests/chaos/shim.c"
        source = Path(__file__).with_name("shim.c")
        command = ("gcc", "-shared", "-fPIC", "-O2", "-o", self._library, source, "-ldl")
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        return "" if done.returncode == 0 else f"gcc cannot compile shim.c: {done.stderr}"
