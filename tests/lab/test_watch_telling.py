"""``netprobe watch`` and a real Alertmanager: what begins and ends on a router arrives, once."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from netprobe.history.ledger import open_ledger
from tests.lab.watching import DROP, REJECT, WatchLab, watch_lab
from tests.patience import PATIENCE_S, wait_until
from tests.ports import free_port

pytestmark = [
    pytest.mark.lab,
    pytest.mark.full,
    pytest.mark.needs("namespaces", "prometheus-alertmanager", "amtool"),
]
# An alert ends by itself after three rounds: a busy machine must not be slower than that.
EVERY_S = 5
CONFIG = """
route:
  {{receiver: all, group_by: [finding], group_wait: 0s, group_interval: 1s, repeat_interval: 1d}}
receivers:
  - name: all
    webhook_configs: [{{url: "http://127.0.0.1:{port}/alertmanager", send_resolved: true}}]
"""
# Path, finding, status.
Message = tuple[str, str, str]


@dataclass
class Collector:
    """What takes messages, from the Alertmanager and from the watch itself."""

    port: int = field(default_factory=free_port)
    got: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[None]:
        server = ThreadingHTTPServer(("127.0.0.1", self.port), partial(_Handler, self.got))
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def messages(self) -> list[Message]:
        return [
            (path, alert["labels"]["finding"], alert["status"])
            for path, body in self.got
            for alert in body["alerts"]
        ]

    def wait_for(self, *messages: Message) -> None:
        wait_until(lambda: {*messages} <= {*self.messages()}, f"{messages}")


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, got: list[tuple[str, dict[str, Any]]], *words: Any) -> None:
        self._got = got
        super().__init__(*words)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._got.append((self.path, json.loads(body)))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        pass


@contextmanager
def alertmanager(folder: Path, port: int, collector: int) -> Iterator[Callable[[], list[str]]]:
    """Run one, ready; gives what lists the findings of its alerts, by amtool."""
    (folder / "am.yaml").write_text(CONFIG.format(port=collector))
    words = (f"--config.file={folder}/am.yaml", f"--storage.path={folder}/am")
    where = (f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address=")
    with (folder / "am.log").open("ab") as log:
        argv = ["prometheus-alertmanager", *words, *where]
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        wait_until(lambda: _ask(port).returncode == 0, f"{folder}/am.log")
        yield lambda: [one["labels"]["finding"] for one in json.loads(_ask(port).stdout)]
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def _ask(port: int) -> subprocess.CompletedProcess[str]:
    url = f"--alertmanager.url=http://127.0.0.1:{port}"
    argv = ["amtool", url, "alert", "query", "-o", "json"]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def told(lab: WatchLab, receiver: str) -> dict[str, str]:
    with open_ledger(str(lab.db)) as ledger:
        return ledger.told(receiver) or {}


def test_an_alert_a_finding_and_nothing_is_lost_while_a_receiver_is_away() -> None:
    """An outage fires once, however often the watch repeats it, and is resolved at its true end.
    While Alertmanager and webhook are away one outage comes and goes, and one stays: the webhook
    hears of the first that it is over and of the second that it began, each once; Alertmanager has
    the second alone."""
    collector, port = Collector(), free_port()
    alerts, webhook = f"alertmanager=http://127.0.0.1:{port}", f"http://127.0.0.1:{collector.port}"
    receivers = ("--notify", alerts, "--notify", f"webhook={webhook}/hook")
    with watch_lab(EVERY_S, *receivers) as lab, lab.watching():
        with collector.running(), alertmanager(lab.folder, port, collector.port) as findings:
            lab.plant(REJECT)
            (first,) = lab.wait_for(True)
            firing = [(path, first.id, "firing") for path in ("/hook", "/alertmanager")]
            collector.wait_for(*firing)
            for _ in range(5):  # longer than an alert lives that is not sent again
                lab.wait_for_next_look()
                assert findings() == [first.id]
            lab.clear()
            (first,) = lab.wait_for(False)
            over = [(path, first.id, "resolved") for path in ("/hook", "/alertmanager")]
            collector.wait_for(*over)
            assert findings() == []
        check_end(collector, first.times.first_good)

        lab.plant(REJECT)
        lab.wait_for(False, True)
        lab.clear()
        lab.wait_for(False, False)
        lab.plant(DROP)
        _, second, third = lab.wait_for(False, False, True)
        with collector.running(), alertmanager(lab.folder, port, collector.port) as findings:
            late = ("/hook", second.id, "resolved")
            begun = [(path, third.id, "firing") for path in ("/hook", "/alertmanager")]
            collector.wait_for(late, *begun)
            wait_until(lambda: told(lab, alerts).get(second.id) == "resolved")
            assert findings() == [third.id]
    assert sorted(collector.messages()) == sorted([*firing, *over, late, *begun])


def check_end(collector: Collector, first_good: float | None) -> None:
    """The alert that is resolved ended when it was seen good."""
    for _, body in collector.got:
        for alert in body["alerts"]:
            if alert["status"] == "resolved":
                assert first_good is not None
                end = datetime.fromisoformat(alert["endsAt"]).timestamp()
                assert abs(end - first_good) < 0.001
