"""A real Prometheus scrapes ``netprobe watch``, and its rules fire into a real Alertmanager."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
import yaml

from tests.lab.netlab import find_program
from tests.lab.test_watch_telling import Collector, alertmanager
from tests.lab.watching import REJECT, watch_lab
from tests.patience import PATIENCE_S, wait_until
from tests.ports import free_port

pytestmark = [
    pytest.mark.lab,
    pytest.mark.full,
    pytest.mark.needs("namespaces", "prometheus", "prometheus-alertmanager", "amtool"),
]
RULES = Path(__file__).parents[2] / "contrib/prometheus/netprobe.rules.yaml"


class Prometheus:
    """One that runs; asked over its API."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def is_ready(self) -> bool:
        try:
            with urlopen(f"{self._url}/-/ready") as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def ask(self, question: str) -> list[tuple[dict[str, str], float]]:
        """Labels and values of a query, now."""
        with urlopen(f"{self._url}/api/v1/query?{urlencode({'query': question})}") as answer:
            found = json.load(answer)["data"]["result"]
        return [(one["metric"], float(one["value"][1])) for one in found]


@contextmanager
def prometheus(folder: Path, scraped: int, alerts: int) -> Iterator[Prometheus]:
    """Run one with our rules, which scrapes that port and sends its alerts to the other one."""
    port = free_port()
    config: dict[str, Any] = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(RULES)],
        "scrape_configs": [
            {"job_name": "netprobe", "static_configs": [{"targets": [f"127.0.0.1:{scraped}"]}]}
        ],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alerts}"]}]}]},
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(config))
    argv = [
        find_program("prometheus") or "prometheus",
        f"--config.file={folder}/prometheus.yaml",
        f"--storage.tsdb.path={folder}/tsdb",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("ab") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    made = Prometheus(port)
    try:
        wait_until(made.is_ready, f"{folder}/prometheus.log")
        yield made
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def test_an_outage_is_scraped_and_its_alert_fires() -> None:
    """Its series is 1 while it lasts and 0 after, and that of no other outage is there; the alert
    names the finding of the history, fires once, and is resolved; a healthy watch fires nothing."""
    metrics, alerts, collector = free_port(), free_port(), Collector()
    with (
        watch_lab(2, "--metrics", f"127.0.0.1:{metrics}") as lab,
        collector.running(),
        alertmanager(lab.folder, alerts, collector.port),
        lab.watching(),
        prometheus(lab.folder, metrics, alerts) as scraper,
    ):
        wait_until(lambda: scraper.ask('netprobe_flows{verdict="pass",requirement="web"} == 2'))
        lab.wait_for_next_look()
        assert scraper.ask("netprobe_outage_open") == []
        assert scraper.ask("ALERTS") == []
        lab.plant(REJECT)
        (outage,) = lab.wait_for(True)
        collector.wait_for(("/alertmanager", outage.id, "firing"))
        ((labels, value),) = scraper.ask("netprobe_outage_open")
        assert (labels["finding"], labels["requirement"], value) == (outage.id, "web", 1)
        ((labels, value),) = scraper.ask("netprobe_outage_started_timestamp_seconds")
        assert abs(value - outage.times.first_bad) < 0.001
        assert {one["alertname"] for one, _ in scraper.ask("ALERTS")} == {"NetprobeOutageOpen"}
        lab.clear()
        collector.wait_for(("/alertmanager", outage.id, "resolved"))
        assert [value for _, value in scraper.ask("netprobe_outage_open")] == [0]
        ((_, seconds),) = scraper.ask('netprobe_outage_seconds_total{requirement="web"}')
        assert seconds > 0
    assert len(collector.messages()) == 2
    (alert,) = collector.got[0][1]["alerts"]
    assert alert["annotations"]["summary"].startswith(
        "Required flows are blocked (admin-prohibited)"
    )
