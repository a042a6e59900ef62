"""Hold the JSON reports of the lab's runs against expected.yaml: check.py RUN.json ...

Runs on the jump host. Reads what netprobe wrote and imports nothing of it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

EXPECTED = Path(__file__).with_name("expected.yaml")
SHOWN = 10


class Flow(NamedTuple):
    """One flow; ``port`` is None where the protocol has none."""

    requirement: str
    source: str
    destination: str
    protocol: str
    port: int | None

    def __str__(self) -> str:
        port = "" if self.port is None else f"/{self.port}"
        ends = f"{self.source} -> {self.destination}"
        return f"{self.requirement}: {ends} {self.protocol}{port}"


def main(files: list[str]) -> int:
    """Print one line for each run, and what is wrong with it; 0 when all is as expected."""
    expected = yaml.safe_load(EXPECTED.read_text(encoding="utf-8"))
    problems = 0
    for name in files:
        run = json.loads(Path(name).read_text(encoding="utf-8"))
        matrix = run["matrices"][0]["name"]
        found = [*wrong(run, expected[matrix])]
        problems += len(found)
        write(f"{matrix}: {summary(run)}: {'NOT as expected' if found else 'as expected'}")
        for line in found[:SHOWN]:
            write(f"  {line}")
        if found[SHOWN:]:
            write(f"  ... and {len(found) - SHOWN} more")
    return 1 if problems else 0


def wrong(run: dict[str, Any], expected: dict[str, Any]) -> Iterator[str]:
    """Everything in a run that is not as expected, in words."""
    if not run["complete"]:
        yield "the run did not come to its end"
    stopped = expected_flows(expected["blocked"])
    verdicts = {}
    for result in run["results"]:
        for flow in flows(result):
            verdicts[flow] = result["verdict"]
            if flow in stopped and result["verdict"] == "blocked":
                place = stopped[flow]
                if place not in result["where"]:
                    yield f"{flow}: where is {result['where']}, without the true place, {place}"
    for flow in sorted(stopped, key=str):
        if verdicts.get(flow) != "blocked":
            yield f"{flow}: {verdicts.get(flow, 'not in the report')}, but the firewall stops it"
    for flow in sorted(verdicts.keys() - stopped.keys(), key=str):
        if verdicts[flow] != "pass":
            yield f"{flow}: {verdicts[flow]}, but nothing stops it"
    yield from differing("flows", len(verdicts), expected["flows"])
    skipped = sorted({item["requirement"] for item in run["skipped"]})
    yield from differing("skipped requirements", skipped, sorted(expected["skipped"]))


def differing(what: str, have: object, want: object) -> Iterator[str]:
    """A line where the two are not equal."""
    if have != want:
        yield f"{what}: {have}, expected {want}"


def flows(result: dict[str, Any]) -> Iterator[Flow]:
    """Every single flow of a result, whose ports may be a range."""
    ends = (result["requirement"], result["source"], result["destination"], result["protocol"])
    if result["port"] is None:
        yield Flow(*ends, None)
        return
    for port in range(result["port"], result["end_port"] + 1):
        yield Flow(*ends, port)


def expected_flows(cuts: Iterable[dict[str, Any]]) -> dict[Flow, str]:
    """Each flow that the firewall stops, and where it does."""
    found = {}
    for cut in cuts:
        for source, destination in cut["flows"]:
            for port in ports(cut.get("ports")):
                flow = Flow(cut["requirement"], source, destination, cut["protocol"], port)
                found[flow] = cut["where"]
    return found


def ports(text: object) -> Iterable[int | None]:
    """``8472``, ``7400-7499``, or nothing where the protocol has no ports."""
    if text is None:
        return [None]
    first, _, last = str(text).partition("-")
    return range(int(first), int(last or first) + 1)


def summary(run: dict[str, Any]) -> str:
    """``26341 flows: 25000 pass, 12 blocked``, counting every port."""
    counts = Counter(result["verdict"] for result in run["results"] for _ in flows(result))
    return f"{counts.total()} flows, " + ", ".join(
        f"{number} {verdict}" for verdict, number in counts.most_common()
    )


def write(line: str) -> None:
    """Print a line."""
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
