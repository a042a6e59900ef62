"""What `contrib/` gives beside a watch: alert rules, a dashboard, a unit for systemd."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from netprobe.report.record.collector import collect
from netprobe.watch.metrics import WatchMetrics
from tests.report.samples import BLOCKED, PASSED
from tests.watch.test_telling import DURING, round_of

ROOT = Path(__file__).parents[2]
CONTRIB = ROOT / "contrib"
RULES = CONTRIB / "prometheus/netprobe.rules.yaml"
RULE_TESTS = CONTRIB / "prometheus/netprobe.test.yaml"
UNIT = CONTRIB / "systemd/netprobe-watch.service"
# Prometheus itself gives these.
GIVEN = {"job", "instance", "le"}
PANELS = {"stat", "state-timeline", "timeseries", "bargauge", "table"}
# What Grafana puts in: https://grafana.com/docs/grafana/latest/dashboards/variables/
VARIABLES = {"$__range": "1d", "$job": ".*", "$instance": ".*"}
WIDTH = 24
# Of 100; systemd calls this "OK". What a probe needs most is what costs most: the network.
MOST_EXPOSED = 20


def exposed() -> dict[str, set[str]]:
    """The names of all samples that a watch gives, and their labels."""
    metrics = WatchMetrics(300.0, lambda: 100.0)
    with closing(collect([BLOCKED, PASSED])) as seen:
        metrics.take_round(round_of(seen))
    metrics.state.take_history(DURING)
    found: dict[str, set[str]] = {}
    for family in metrics.registry.collect():
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                found.setdefault(sample.name, set()).update(sample.labels)
    return found


def dashboard() -> dict[str, Any]:
    made: dict[str, Any] = json.loads((CONTRIB / "grafana/netprobe.json").read_text())
    return made


def targets() -> list[dict[str, Any]]:
    return [target for panel in dashboard()["panels"] for target in panel["targets"]]


def expressions() -> Iterator[str]:
    """What the rules and the dashboard ask Prometheus."""
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        yield from (rule["expr"] for rule in group["rules"])
    yield from (target["expr"] for target in targets())


def run(*words: str | Path, cwd: Path) -> None:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_asked_for_is_what_a_watch_gives() -> None:
    """Each metric and each label of rules, dashboard and page; and each metric is on the page."""
    names = exposed()
    page = (ROOT / "docs/watch.md").read_text()
    labels = set().union(*names.values(), GIVEN)
    for text in expressions():
        assert set(re.findall(r"netprobe_\w+", text)) <= names.keys(), text
        for words in re.findall(r"by \(([^)]*)\)", text):
            assert set(words.split(", ")) <= labels, text
        for words in re.findall(r"\{([^}]*)\}", text):
            assert set(re.findall(r"(\w+)[=!]", words)) <= labels, text
    families = {re.sub("_(bucket|count|sum)$", "", name) for name in names}
    assert families == set(re.findall(r"netprobe_\w+", page))


@pytest.mark.needs("promtool")
def test_alerts_fire_and_are_silent_as_they_must(tmp_path: Path) -> None:
    """By promtool, which also reads each question of the dashboard; no alert has no test."""
    run("promtool", "check", "rules", RULES, cwd=tmp_path)
    run("promtool", "test", "rules", RULE_TESTS.name, cwd=RULE_TESTS.parent)
    tested: dict[str, set[bool]] = {}
    for test in yaml.safe_load(RULE_TESTS.read_text())["tests"]:
        for one in test["alert_rule_test"]:
            tested.setdefault(one["alertname"], set()).add(bool(one["exp_alerts"]))
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    assert tested == {rule["alert"]: {True, False} for rule in group["rules"]}

    asked = [fill_in(target["expr"]) for target in targets()]
    rules = [{"record": f"a:{number}", "expr": text} for number, text in enumerate(asked)]
    document = {"groups": [{"name": "dashboard", "rules": rules}]}
    (tmp_path / "asked.yaml").write_text(yaml.safe_dump(document))
    run("promtool", "check", "rules", "asked.yaml", cwd=tmp_path)


def fill_in(text: str) -> str:
    for name, value in VARIABLES.items():
        text = text.replace(name, value)
    assert "$" not in text
    return text


def test_the_dashboard_is_one_that_grafana_takes() -> None:
    """Panels of Grafana's own kinds, each once, side by side on its grid; no data source of ours;
    and no variable that it does not have."""
    made = dashboard()
    panels = made["panels"]
    assert isinstance(made["schemaVersion"], int)
    assert made["title"]
    assert {panel["type"] for panel in panels} <= PANELS
    assert len({panel["id"] for panel in panels}) == len({one["title"] for one in panels})
    assert len({panel["id"] for panel in panels}) == len(panels)
    for one in panels:
        refs = [target["refId"] for target in one["targets"]]
        assert len(refs) == len(set(refs)) > 0
        assert one["gridPos"]["x"] + one["gridPos"]["w"] <= WIDTH
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        assert are_apart(one, other), (one, other)
    sources = [one["datasource"] for one in [*panels, *targets()]]
    assert {(one["type"], one["uid"]) for one in sources} == {("prometheus", "${datasource}")}
    variables = {one["name"] for one in made["templating"]["list"]}
    used = re.findall(r"\$\{?([a-z]\w*)", json.dumps(made))
    assert set(used) == variables == {"datasource", "job", "instance"}


def are_apart(one: dict[str, int], other: dict[str, int]) -> bool:
    """Whether two places on the grid have nothing in common."""
    return any(
        one[at] + one[size] <= other[at] or other[at] + other[size] <= one[at]
        for at, size in (("x", "w"), ("y", "h"))
    )


@pytest.mark.needs("systemd-analyze")
def test_the_unit_is_valid_and_hardened(tmp_path: Path) -> None:
    """By systemd, with a program that is there; and it starts what the packages install."""
    text = UNIT.read_text()
    assert "\nExecStart=/usr/bin/netprobe watch " in text
    unit = tmp_path / UNIT.name
    unit.write_text(text.replace("/usr/bin/netprobe", "/bin/true"))
    run("systemd-analyze", "verify", "--man=no", unit, cwd=tmp_path)
    security = ("systemd-analyze", "security", "--offline=yes", f"--threshold={MOST_EXPOSED}")
    run(*security, "--no-pager", unit, cwd=tmp_path)
