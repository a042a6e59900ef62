"""The history of a year of a large estate, and how long it takes to be read:
``python -m tests.history.year``.

Its looks are those of a watch: a plan of blocks, results that the watch's own code makes a look and
a report of, and its keeper, which writes them. Only the time is made up. Of rounds that saw the
same the keeper leaves the first and the last, so that the others are not made here.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from netprobe.history.ledger import open_ledger
from netprobe.model.codec import result_to_json
from netprobe.model.outage import RunLook
from netprobe.model.result import Result
from netprobe.model.run import info_before
from netprobe.report.record.collector import Collector
from netprobe.report.record.merge import ranges_of
from netprobe.watch.flows import flows_of
from netprobe.watch.keeping import LookKeeper
from netprobe.watch.looking import LookEnd
from netprobe.watch.round import RoundSeen, look_of_results
from tests.batch.world import plan_of
from tests.cli.command import COMMAND
from tests.probe.fakes import host
from tests.report.samples import BLOCKED, PASSED
from tests.watch.test_parts import Told

DAY_S: Final = 86400.0
EVERY_S: Final = 300.0
ROWS: Final = (
    ("etcd", "tcp", ((2379, 2380),)),
    ("api", "tcp", ((6443, 6443),)),
    ("kubelet", "tcp", ((10250, 10250), (10256, 10256))),
    ("web", "tcp", ((4240, 4244),)),
    ("vxlan", "udp", ((8472, 8472),)),
)
# What a failing result has that a good one has not.
FAILS: Final = {
    name: getattr(BLOCKED, name)
    for name in ("verdict", "state", "reason", "proof", "where", "last_hop", "rtt_ms", "because")
}
STARTED: Final = "2026-01-01T00:00:00Z"


class YearMaker:
    """Makes what a watch keeps of an estate in which all is well but for one outage at a time."""

    def __init__(self, hosts: int, chosen: random.Random) -> None:
        self._chosen = chosen
        ends = [host(f"node-{at:03}", f"10.0.{at // 200}.{at % 200 + 1}") for at in range(hosts)]
        self.plan = plan_of(*ROWS, hosts=ends)
        self._places = {one.name: at for at, one in enumerate(ends)}
        info = replace(info_before(self.plan, STARTED), complete=True)
        self._end = LookEnd(0.0, 60.0, True, info)
        self._results = list(self._make_results())
        with closing(Collector(ranges_of(self.plan))) as seen:
            for one in self._results:
                seen.add(one)
            round_seen = RoundSeen(self.plan, self._end, seen, {}, {})
            self.good = round_seen.make_look(0.0)
            self._lines = round_seen.make_record().splitlines(keepends=True)
        # Of each result its line: the header is before the first.
        self._line_of = {
            (*known["order"], known["port"]): at
            for at, known in enumerate(map(json.loads, self._lines[1:-1]), 1)
        }

    def _make_results(self) -> Iterator[Result]:
        for flow in self.plan.flows():
            block = flow.block
            order = block.order(self._places[flow.source.name], self._places[flow.destination.name])
            for first, last in block.ports:
                yield replace(
                    PASSED, order=order, matrix=block.matrix, requirement=block.requirement.id,
                    source=flow.source.name, destination=flow.destination.name,
                    address=flow.address.text, protocol=block.protocol, port=first, end_port=last,
                    rtt_ms=round(self._chosen.uniform(0.2, 2), 3),
                )  # fmt: skip

    def choose_failures(self) -> list[Result]:
        """Choose what fails: a flow, a row from one host to all, or all of a host."""
        one = self._chosen.choice(self._results)
        kind = self._chosen.choices(("flow", "row", "host"), (80, 15, 5))[0]
        found = [one]
        if kind == "row":
            row = (one.source, one.requirement)
            found = [each for each in self._results if (each.source, each.requirement) == row]
        elif kind == "host":
            found = [
                each for each in self._results if one.source in (each.source, each.destination)
            ]
        return [replace(each, **FAILS) for each in found]

    def make_record(self, at: float, failures: Sequence[Result]) -> bytes:
        """Give the file of the round in which these fail, as the watch writes it."""
        lines = list(self._lines)
        for one in failures:
            words = json.dumps({"order": one.order, **result_to_json(one)}, separators=(",", ":"))
            lines[self._line_of[(*one.order, one.port)]] = words.encode() + b"\n"
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)).encode()
        for place in (0, -1):
            lines[place] = lines[place].replace(STARTED.encode(), stamp)
        return b"".join(lines)

    def make_look(self, failures: Sequence[Result]) -> RunLook:
        """Give a quick look at these alone."""
        return look_of_results(self._end, failures)


def keep_year(path: str, made: YearMaker, days: int, outages: int, chosen: random.Random) -> None:
    """Keep a history that ends now, with so many outages in so many days."""
    now = time.time()
    at = now - days * DAY_S
    gap_s = days * DAY_S / outages
    with open_ledger(path, create=True) as ledger:
        keeper = LookKeeper(ledger, Told())
        keeper.keep(_date(made.good, at), made.make_record(at, ()))
        for number in range(outages):
            begin = now - days * DAY_S + (number + chosen.uniform(0.1, 0.5)) * gap_s
            _keep_outage(keeper, made, begin, chosen.uniform(2 * EVERY_S, 0.4 * gap_s))
        keeper.keep(_date(made.good, now - EVERY_S))


def _keep_outage(keeper: LookKeeper, made: YearMaker, at: float, lasts_s: float) -> None:
    """What a watch keeps: the last good round, that which finds it, rounds beside it, and the quick
    looks between which it ends."""
    failures = made.choose_failures()
    bad, flows = made.make_look(failures), flows_of(failures)
    good = made.make_look([replace(one, verdict="pass") for one in failures])
    record = made.make_record(at, failures)
    keeper.keep(_date(made.good, at - EVERY_S))
    keeper.keep(_date(replace(made.good, findings=bad.findings), at), record)
    beside = replace(made.good, unasked=flows)
    keeper.keep(_date(beside, at + EVERY_S), made.make_record(at + EVERY_S, failures))
    keeper.hold(lambda: _date(bad, at + lasts_s))
    keeper.keep(_date(good, at + lasts_s + 1))
    after = at + lasts_s + EVERY_S
    keeper.keep(_date(made.good, after), made.make_record(after, ()))


def _date(look: RunLook, at: float) -> RunLook:
    return replace(look, begun=at, decided=at + look.decided - look.begun)


def _time_command(*words: str) -> str:
    """Say how long a command takes, the best of three, and how much it prints."""
    took: list[tuple[float, float]] = []
    size = 0
    for _ in range(3):
        begun, used = time.monotonic(), _read_processor_s()
        size = len(subprocess.run([*COMMAND, *words], check=True, stdout=subprocess.PIPE).stdout)
        took.append((_read_processor_s() - used, time.monotonic() - begun))
    processor_s, all_s = map(min, zip(*took, strict=True))
    return f"{processor_s:.2f} s of processor, {all_s:.2f} s in all; {size / 1e6:.2f} MB printed"


def _read_processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Print the size of the file, and how long it takes to be read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=201)
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--outages", type=int, default=365)
    given = parser.parse_args()
    chosen = random.Random(33)
    write = sys.stdout.write
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "netprobe.db"))
        made = YearMaker(given.hosts, chosen)
        write(f"{made.plan.flow_count():,} flows, {given.outages} outages in {given.days} days\n")
        keep_year(path, made, given.days, given.outages, chosen)
        write(f"the file: {os.path.getsize(path) / 1e6:.1f} MB\n")
        sys.stdout.flush()
        for name, words in (
            ("history --since 7d", ("--since", "7d")),
            ("history", ()),
            ("the page of all", ("-o", "html")),
            ("the page of 7 days", ("-o", "html", "--since", "7d")),
        ):
            write(f"{name}: {_time_command('history', '--history', path, *words)}\n")
            sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
