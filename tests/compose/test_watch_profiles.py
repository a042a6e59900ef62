"""Prometheus and Alertmanager of the Docker lab: their files, and both as the lab starts them, in
namespaces with the lab's addresses; needs no engine."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lab.netlab import Namespace, run
from tests.lab.watching import REJECT, WatchLab, watch_lab
from tests.patience import wait_until

ROOT = Path(__file__).parents[2]
SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))["services"]
NAMES = ("prometheus", "alertmanager")
DATA = "/var/lib/prometheus"
METRICS = "0.0.0.0:9815"


def find_mounts(name: str) -> dict[str, str]:
    """The checkout's files by the places where a service has them."""
    mounts = [text.split(":") for text in SERVICES[name]["volumes"]]
    return {place: str(ROOT / source) for source, place, _ in mounts}


def put_back(text: str, places: dict[str, str]) -> str:
    """What a service reads, with the places that files have here."""
    for place, source in places.items():
        text = text.replace(place, source)
    return text


def read_config(name: str) -> str:
    mounts = find_mounts(name)
    return put_back(Path(mounts[f"/lab/{name}.yaml"]).read_text(encoding="utf-8"), mounts)


def address_of(name: str) -> str:
    (network,) = SERVICES[name]["networks"].values()
    return str(network["ipv4_address"])


def test_each_is_a_profile_of_its_own() -> None:
    """Neither starts unless it is asked for; they and the jump host are where the files say."""
    asked_for = {name: one["profiles"] for name, one in SERVICES.items() if "profiles" in one}
    assert asked_for == {name: [name] for name in NAMES}
    config = yaml.safe_load(read_config("prometheus"))
    (scraped,) = config["scrape_configs"][0]["static_configs"][0]["targets"]
    (told,) = config["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    assert scraped == f"{address_of('jump')}:9815"
    assert told == f"{address_of('alertmanager')}:9093"
    page = (ROOT / "docs/compose.md").read_text(encoding="utf-8")
    assert f"--metrics {METRICS}" in page
    assert all(f"--profile {name}" in page for name in NAMES)
    assert f"{address_of('prometheus')}:9090" in page
    assert f"{address_of('alertmanager')}:9093" in page


@pytest.mark.needs("promtool", "amtool")
def test_their_own_tools_read_their_files(tmp_path: Path) -> None:
    """Also the alert rules, which are those of contrib/."""
    words = {
        "prometheus": ("promtool", "check", "config"),
        "alertmanager": ("amtool", "check-config"),
    }
    for name in NAMES:
        path = tmp_path / name
        path.write_text(read_config(name), encoding="utf-8")
        done = subprocess.run([*words[name], path], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


class Started:
    """A service of the lab that runs in a namespace with its address."""

    def __init__(self, lab: WatchLab, name: str) -> None:
        service = SERVICES[name]
        self._words = service["healthcheck"]["test"][1:]
        self._host: Namespace = lab.lab.host(name, lab["router"], address_of(name))
        config = lab.lab.write(f"{name}.yaml", read_config(name))
        places = {f"/lab/{name}.yaml": str(config), DATA: str(lab.folder)}
        with (lab.folder / f"{name}.log").open("wb") as log:
            argv = [put_back(word, places) for word in service["command"]]
            self._host.spawn(*argv, stdout=log, stderr=log)

    def is_healthy(self) -> bool:
        return run(*self._host.enter, *self._words, check=False).returncode == 0

    def ask(self, *words: str) -> str:
        return self._host.run(*words)


@pytest.mark.lab
@pytest.mark.full
@pytest.mark.needs("namespaces", "prometheus", "promtool", "prometheus-alertmanager", "amtool")
def test_an_outage_gets_to_the_alertmanager() -> None:
    """A watch on the jump host is scraped, and its outage is an alert as long as it lasts."""
    with watch_lab(2, "--metrics", METRICS) as lab:
        jump = lab.lab.host("jump", lab["router"], address_of("jump"))
        lab.before = tuple(jump.enter)
        prometheus, alertmanager = (Started(lab, name) for name in NAMES)
        wait_until(prometheus.is_healthy, f"{lab.folder}/prometheus.log")
        wait_until(alertmanager.is_healthy, f"{lab.folder}/alertmanager.log")

        def find_alerts() -> set[str]:
            words = ("amtool", "--alertmanager.url=http://127.0.0.1:9093", "alert", "query")
            alerts: list[dict[str, Any]] = json.loads(alertmanager.ask(*words, "-o", "json"))
            return {one["labels"]["finding"] for one in alerts}

        with lab.watching():
            query = ("promtool", "query", "instant", "http://127.0.0.1:9090")
            wait_until(
                lambda: "pass" in prometheus.ask(*query, 'netprobe_flows{requirement="web"}')
            )
            assert find_alerts() == set()
            lab.plant(REJECT)
            (outage,) = lab.wait_for(True)
            wait_until(lambda: find_alerts() == {outage.id})
            lab.clear()
            wait_until(lambda: find_alerts() == set())
