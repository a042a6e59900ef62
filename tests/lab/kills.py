"""A table of kills: ``python -m tests.lab.kills --count 50``.

A watch is killed at random moments and in the middle of writes, while outages that are planted on
a router begin, go on and end, and is started again. Lanes go side by side, each with a lab and a
watch of its own.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from netprobe.history.ledger import open_ledger
from netprobe.model.outage import Outage, RunLook
from tests.lab.outages import KINDS
from tests.lab.watching import Moment, WatchLab, contains, watch_lab
from tests.patience import PATIENCE_S, wait_until

EVERY_S = 1
# A watch that has just been started reads its files and starts agents; a round is shorter.
LONGEST_S = 2.0
# Whether a write has begun is looked so often; it takes milliseconds, and is stopped within these.
SHORT_S = 0.0005
WRITE_S = 0.01
PHASES = ("it starts", "all is well", "an outage begins", "it goes on", "it ends")


class Kill(NamedTuple):
    """One kill. ``in_write``: a transaction was neither written nor taken back. ``lost``: looks
    that were in the history before and are not after; ``doubled``: those that are there twice;
    ``torn``: texts of which no look has need, as half a transaction leaves them."""

    phase: str
    in_write: bool
    lost: int
    doubled: int
    torn: int


class Lane(NamedTuple):
    """What came of a lane: its kills, outages as they were and as they are recorded, and what is
    left of watches that are over."""

    kills: list[Kill]
    planted: list[tuple[Moment, Moment]]
    outages: tuple[Outage, ...]
    left: list[str]

    @property
    def contained(self) -> int:
        """How many recorded outages have one flow, and contain the true one."""
        pairs = zip(self.outages, self.planted, strict=False)
        return sum(len(one.members) == 1 and contains(one.times, *true) for one, true in pairs)

    @property
    def is_as_promised(self) -> bool:
        """Whether nothing is lost, doubled or left behind."""
        whole = self.contained == len(self.planted) == len(self.outages)
        return whole and not self.left and not any(any(one[2:]) for one in self.kills)


def kill_watches(count: int, lanes: int, seed: int = 33) -> list[Lane]:
    """Kill so many watches in so many lanes."""
    shares = [len(range(lane, count, lanes)) for lane in range(lanes)]
    with ThreadPoolExecutor(lanes) as threads:
        return list(threads.map(_kill_lane, shares, range(seed, seed + lanes)))


def _kill_lane(count: int, seed: int) -> Lane:
    with watch_lab(EVERY_S) as lab:
        temporary = lab.folder / "temporary"
        temporary.mkdir()
        lab.before = ("env", f"TMPDIR={temporary}")
        killer = _Killer(lab, random.Random(seed))
        killer.kill_all(count)
        with lab.watching():
            pass
        left = [str(one) for one in (*temporary.iterdir(), *lab.folder.glob("h.db?*"))]
        left.remove(f"{lab.db}.lock")
        left += [f"process {pid} on {name}" for name in lab.hosts for pid in lab[name].pids()]
        left += [f"{one} on {name}" for name in lab.hosts for one in lab[name].listening()]
        return Lane(killer.kills, killer.planted, lab.read().outages, left)


class _Killer:
    """Goes through outages again and again, and kills the watch in each phase."""

    def __init__(self, lab: WatchLab, chosen: random.Random) -> None:
        self.kills: list[Kill] = []
        self.planted: list[tuple[Moment, Moment]] = []
        self._lab = lab
        self._chosen = chosen

    def kill_all(self, most: int) -> None:
        """Kill about so often: no outage stays open."""
        lab = self._lab
        process = lab.start()
        try:
            lab.wait_for_next_look(process)
            while len(self.kills) < most:
                process = self._kill_during_outage(process)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()

    def _kill_during_outage(self, process: subprocess.Popen[bytes]) -> subprocess.Popen[bytes]:
        lab, number = self._lab, len(self.planted)
        ended_before = [False] * number
        odd = number % 2 == 1
        process = self._kill(process, PHASES[0], in_write=False)
        lab.wait_for_next_look(process)
        process = self._kill(process, PHASES[1], in_write=odd)
        begun = lab.plant([*KINDS.values()][number % len(KINDS)])
        process = self._kill(process, PHASES[2], in_write=not odd)
        lab.wait_for(*ended_before, True)
        process = self._kill(process, PHASES[3], in_write=odd)
        ended = lab.clear()
        process = self._kill(process, PHASES[4], in_write=not odd)
        lab.wait_for(*ended_before, False)
        self.planted.append((begun, ended))
        return process

    def _kill(
        self, process: subprocess.Popen[bytes], phase: str, *, in_write: bool
    ) -> subprocess.Popen[bytes]:
        """Kill a watch, and start the next one."""
        lab = self._lab
        before = _read_whole(lab)
        if in_write:
            _stop_in_write(process, _journal_of(lab), self._chosen)
        else:
            time.sleep(LONGEST_S * self._chosen.random())
        process.kill()
        process.wait()
        was_writing = _journal_of(lab).exists()
        # Sometimes it is the next watch that takes back what was half written.
        after = [] if self._chosen.random() < 0.5 else _read_whole(lab)
        process = lab.start()
        if not after:
            lab.wait_for_next_round()
            after = _read_whole(lab)
        lost, doubled = _count_lost(before, after), _count_doubled(after)
        self.kills.append(Kill(phase, was_writing, lost, doubled, _count_torn(lab)))
        return process


def _journal_of(lab: WatchLab) -> Path:
    """What SQLite has beside the file from the first write of a transaction until its end:
    https://www.sqlite.org/tempfiles.html, section 2.1."""
    return Path(f"{lab.db}-journal")


def _stop_in_write(process: subprocess.Popen[bytes], journal: Path, chosen: random.Random) -> None:
    """Stop a watch at some moment after it has begun to write, and before it has ended."""
    late = time.monotonic() + PATIENCE_S
    while True:
        while not journal.exists():
            assert time.monotonic() < late, f"waited {PATIENCE_S:g} s for {journal}"
            time.sleep(SHORT_S)
        time.sleep(WRITE_S * chosen.random())
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: _is_stopped(process.pid))
        if journal.exists():
            return
        process.send_signal(signal.SIGCONT)


def _is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def _read_whole(lab: WatchLab) -> list[RunLook]:
    """Read all looks of a history that SQLite finds whole."""
    with closing(sqlite3.connect(lab.db)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with open_ledger(str(lab.db)) as ledger:
        return list(ledger.looks())


def _count_lost(before: Sequence[RunLook], after: Sequence[RunLook]) -> int:
    """Count looks that are gone. A watch takes its last one back where the next saw the same: then
    there is a later one."""
    *settled, last = before
    return sum(one not in after for one in settled) + (last.decided > after[-1].decided)


def _count_doubled(looks: Sequence[RunLook]) -> int:
    return len(looks) - len({(one.begun, one.decided) for one in looks})


def _count_torn(lab: WatchLab) -> int:
    """Count texts that nothing refers to (``netprobe/history/ledger.py`` says who refers)."""
    with closing(sqlite3.connect(lab.db)) as connection:
        connection.execute("BEGIN")
        packed = connection.execute("SELECT id, packed FROM text").fetchall()
        looks = connection.execute("SELECT asked, seen, run FROM look").fetchall()
    texts = {number: zlib.decompress(text) for number, text in packed}
    needed = {number for look in looks for number in look}
    for _, seen, run in looks:
        data = json.loads(texts[seen])
        needed.update(data["findings"], (one[-1] for one in data["blind"]))
        needed.update(data[name] for name in ("unasked", "required") if name in data)
        needed.update(json.loads(texts[run].removeprefix(b"parts ")))
    return len(texts.keys() - needed)


def make_kill_table(lanes: Sequence[Lane]) -> Iterator[str]:
    """Give the lines of the table: a line for each phase, and those of all lanes."""
    kills = [one for lane in lanes for one in lane.kills]
    yield f"{len(kills)} kills of a watch that looks every {EVERY_S} s"
    yield "killed while        kills  in a write  looks lost  looks doubled  torn"
    for phase in (*PHASES, "all"):
        some = [one for one in kills if phase in (one.phase, "all")]
        yield (
            f"{phase:18} {len(some):6} {sum(one.in_write for one in some):11}"
            f" {sum(one.lost for one in some):11} {sum(one.doubled for one in some):14}"
            f" {sum(one.torn for one in some):5}"
        )
    planted, recorded, contained = (
        sum(counts)
        for counts in zip(
            *((len(one.planted), len(one.outages), one.contained) for one in lanes), strict=True
        )
    )
    yield f"outages: {planted}, in the history: {recorded}, as they were: {contained}"
    left = [one for lane in lanes for one in lane.left]
    yield f"left behind: {', '.join(left) or 'nothing'}"


def main() -> int:
    """Print the table; 1 where it is not as promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--lanes", type=int, default=2)
    given = parser.parse_args()
    lanes = kill_watches(given.count, given.lanes)
    sys.stdout.write("\n".join(make_kill_table(lanes)) + "\n")
    return 0 if all(one.is_as_promised for one in lanes) else 1


if __name__ == "__main__":
    sys.exit(main())
