"""A watch of a small lab: a client, a router and a server; outages are planted on the router."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from netprobe.history.ledger import open_ledger
from netprobe.history.outages import replay
from netprobe.model.outage import History
from tests.lab.cli import COMMAND, environment, netprobe
from tests.lab.netlab import Lab, Namespace
from tests.patience import PATIENCE_S, wait_until

MATRIX = {
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


@dataclass
class Planted:
    """An outage as it was: wall times before it was planted, and after it was taken away."""

    begun: float
    ended: float


@dataclass
class WatchLab:
    """The lab, and how to watch it. ``words``: further options of the watch."""

    lab: Lab
    every_s: int
    words: tuple[str, ...] = ()
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)

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
        document = {"schema": "netprobe.inventory/1", "hosts": self.hosts}
        self.lab.write("inventory.yaml", yaml.safe_dump(document, sort_keys=False))

    def start(self) -> subprocess.Popen[bytes]:
        """Begin to watch."""
        files = ("-m", f"{self.folder}/matrix.yaml", "-i", f"{self.folder}/inventory.yaml")
        rest = ("--every", f"{self.every_s}s", "--history", str(self.db), *self.words)
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*COMMAND, "watch", *files, *rest], env=environment(), stderr=log, stdout=log
            )

    @contextmanager
    def watching(self) -> Iterator[subprocess.Popen[bytes]]:
        """Watch, from the first look that is kept until it is ended in order."""
        process = self.start()
        try:
            looks = self.count_looks()
            self.wait_for_looks(looks + 1, process)
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

    def read(self) -> History:
        """The history as it is now."""
        with open_ledger(str(self.db)) as ledger:
            return replay(ledger.looks())

    def count_looks(self) -> float:
        """When the last look ended; 0 without any."""
        return (self.read().end or 0.0) if self.db.exists() else 0.0

    def wait_for_looks(self, later_than: float, process: subprocess.Popen[bytes]) -> None:
        def is_later() -> bool:
            assert process.poll() is None, self.log()
            return self.count_looks() >= later_than - 1 and self.count_looks() > 0

        wait_until(is_later, f"a look; {self.folder}/log")

    def wait_for_next_look(self) -> None:
        """Wait until a look is kept that began after now."""
        now = time.time()
        wait_until(
            lambda: any(begun > now for begun, _ in self.read().looks), f"a look; {self.log()}"
        )

    def plant(self, *rules: str) -> float:
        """Let the router have these rules and no others; gives the time just before."""
        before = time.time()
        text = f"; table ip f {{ chain c {{ type filter hook forward priority 0; {'; '.join(rules)}; }}; }}"
        self.lab["router"].nft(TABLE + (text if rules else ""))
        return before

    def clear(self) -> float:
        """Take all rules away; gives the time just after."""
        self.plant()
        return time.time()

    def history(self) -> dict[str, Any]:
        """What `netprobe history` tells."""
        return netprobe("history", "--history", str(self.db), "-o", "json").document


def seconds(text: str | None) -> float:
    """A time of the history, in seconds since 1970."""
    assert text is not None
    return datetime.fromisoformat(text).timestamp()


@contextmanager
def watch_lab(every_s: int, *words: str) -> Iterator[WatchLab]:
    """Build the lab."""
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
