"""A watch of a small lab: a client, a router and a server; outages are planted on the router."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from netprobe.history.ledger import open_ledger
from netprobe.history.outages import replay
from netprobe.model.outage import History, Interval, Outage, RunLook
from tests.lab.cli import COMMAND, environment, netprobe
from tests.lab.netlab import Lab, Namespace
from tests.patience import PATIENCE_S, wait_until

MATRIX: dict[str, Any] = {
    "schema": "netprobe.matrix/1",
    "name": "watched",
    "title": "What is watched",
    "roles": {"client": {}, "server": {}},
    "requirements": [
        {"id": "web", "from": "client", "to": "server", "tcp": ["3000-3001"], "purpose": "p"},
        {"id": "dns", "from": "client", "to": "server", "udp": [53], "purpose": "q"},
        {"id": "back", "from": "server", "to": "client", "tcp": [4000], "purpose": "r"},
    ],
}
DROP = "tcp dport 3000 drop"
REJECT = "tcp dport 3001 reject with icmp type admin-prohibited"
DROP_UDP = "udp dport 53 drop"
TABLE = "table ip f; delete table ip f"


class Moment(NamedTuple):
    """When something was done, by the lab's clock: after the first time and before the second."""

    after: float
    before: float


def contains(times: Interval, begun: Moment, ended: Moment) -> bool:
    """Whether an outage as it was recorded has the true begin and end within its error bars."""
    last_good, first_good = times.last_good, times.first_good
    return (
        last_good is not None
        and first_good is not None
        and last_good <= begun.before
        and times.first_bad >= begun.after
        and times.last_bad <= ended.before
        and first_good >= ended.after
    )


@dataclass
class WatchLab:
    """The lab, and how to watch it. ``words``: further options of the watch."""

    lab: Lab
    every_s: int
    words: tuple[str, ...] = ()
    # What stands before its command.
    before: tuple[str, ...] = ()
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    # What was read last, and the file's time then: who waits reads again and again.
    _read_at: int = 0
    _looks: list[RunLook] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return Path(self.lab.folder)

    @property
    def db(self) -> Path:
        return self.folder / "h.db"

    def add_host(self, name: str, role: str, namespace: Namespace, address: str) -> None:
        """Put a host into the inventory."""
        vantage = {"command": namespace.enter}
        self.hosts[name] = {"address": address, "roles": [role], "vantage": vantage}
        self.write_inventory()

    def write_inventory(self) -> None:
        document = {"schema": "netprobe.inventory/1", "hosts": self.hosts}
        self.lab.write("inventory.yaml", yaml.safe_dump(document, sort_keys=False))

    def write_maintenance(self, *hosts: str, begin_s: float = -3600) -> None:
        """Let these hosts be in maintenance, from so long after now on, for two hours."""
        begin = datetime.now(UTC) + timedelta(seconds=begin_s)
        times = [one.isoformat() for one in (begin, begin + timedelta(hours=2))]
        window = {"hosts": list(hosts), "from": times[0], "until": times[1]}
        self.lab.write("maintenance.yaml", json.dumps([window]))

    def __getitem__(self, name: str) -> Namespace:
        return self.lab[name]

    def let_agent_die(self, name: str) -> Path:
        """Give a file: while it is there, no agent starts on this host."""
        down = self.folder / f"{name}-is-down"
        words = shlex.join(self.lab[name].enter)
        script = f'test ! -e {down} || exit 1; exec {words} "$@"'
        self.hosts[name]["vantage"] = {"command": ["sh", "-c", script, "sh"]}
        self.write_inventory()
        return down

    def start(self) -> subprocess.Popen[bytes]:
        """Begin to watch."""
        files = ("-m", f"{self.folder}/matrix.yaml", "-i", f"{self.folder}/inventory.yaml")
        rest = ("--every", f"{self.every_s}s", "--history", str(self.db), *self.words)
        if (self.folder / "maintenance.yaml").exists():
            rest += ("--maintenance", f"{self.folder}/maintenance.yaml")
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*self.before, *COMMAND, "watch", *files, *rest],
                env=environment(),
                stderr=log,
                stdout=log,
            )

    @contextmanager
    def watching(self, *, blind: bool = False) -> Iterator[subprocess.Popen[bytes]]:
        """Watch, from the first look that is kept until it is ended in order; ``blind``: that one
        may be blind for hosts."""
        process = self.start()
        try:
            if blind:
                wait_until(self.read_looks, f"a look; {self.folder}/log")
            else:
                self.wait_for_next_look(process)
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            try:
                status = process.wait(PATIENCE_S)
            finally:
                process.kill()
                process.wait()
        assert status == 0, self.log()

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def read_looks(self) -> list[RunLook]:
        """The looks that are kept now."""
        if not self.db.exists():
            return []
        stamp = self.db.stat().st_mtime_ns
        if stamp != self._read_at:
            with open_ledger(str(self.db)) as ledger:
                self._read_at, self._looks = stamp, list(ledger.looks())
        return self._looks

    def read(self) -> History:
        """The history as it is now."""
        return replay(self.read_looks())

    def wait_for_next_look(self, process: subprocess.Popen[bytes] | None = None) -> None:
        """Wait until a look is kept that began after now, and was blind for nothing."""
        now = time.time()

        def is_there() -> bool:
            assert process is None or process.poll() is None, self.log()
            return any(one.begun > now and not one.blind for one in self.read_looks())

        wait_until(is_there, f"a look; {self.folder}/log")

    def wait_for_next_round(self) -> None:
        """Wait until a look is kept that began after now, whatever it was blind for."""
        now = time.time()
        wait_until(lambda: self.read_looks()[-1].begun > now, f"a look; {self.folder}/log")

    def wait_for(self, *states: bool) -> tuple[Outage, ...]:
        """Wait until there are outages of which these are open (True) and ended (False)."""

        def has_them() -> bool:
            return sorted(one.is_open for one in self.read().outages) == sorted(states)

        wait_until(has_them, f"outages {states}; {self.folder}/log")
        return self.read().outages

    def pull_cable(self, name: str) -> None:
        """Let a host's cable be out: the router's end is down, and the host's has no carrier."""
        router = self.lab["router"]
        way = router.run("ip", "route", "get", self.lab[name].address(4))
        router.ip(f"link set {way.split(' dev ')[1].split()[0]} down")

    def has_outage_of(self, source: str) -> bool:
        """Whether a flow from this host is in an outage."""
        members = [member for one in self.read().outages for member in one.members]
        return any(one.key[2] == source and one.times.end is None for one in members)

    def plant(self, *rules: str) -> Moment:
        """Let the router have these rules and no others; gives when it was done."""
        before = time.time()
        chain = f"chain c {{ type filter hook forward priority 0; {'; '.join(rules)}; }}"
        self.lab["router"].nft(TABLE + (f"; table ip f {{ {chain}; }}" if rules else ""))
        return Moment(before, time.time())

    def count_now(self) -> Counter[tuple[str, str]]:
        """The flows of each requirement by their verdict, as the report of now has them."""
        words = ("--history", str(self.db), "--when", "0s", "-o", "json")
        found: Counter[tuple[str, str]] = Counter()
        for one in netprobe("history", *words).results:
            found[one["requirement"], one["verdict"]] += one["end_port"] - one["port"] + 1
        return found

    def clear(self) -> Moment:
        """Take all rules away; gives when it was done."""
        return self.plant()


@contextmanager
def watch_lab(every_s: int, *words: str) -> Iterator[WatchLab]:
    """Build the lab. The watch is over before its hosts are gone."""
    with Lab() as lab:
        router = lab.router("router", "10.96.1.1")
        client = lab.host("client", router, "10.96.1.2")
        server = lab.host("server", router, "10.96.2.2")
        lab.wait_until_ready()
        lab.write("matrix.yaml", json.dumps(MATRIX))
        made = WatchLab(lab, every_s, words)
        made.add_host("client", "client", client, "10.96.1.2")
        made.add_host("server", "server", server, "10.96.2.2")
        yield made
