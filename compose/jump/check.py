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
# netprobe adds these flows to those of the matrix: they must pass, and are not counted.
ADDED = "path-mtu"


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
    results = {flow: result for result in run["results"] for flow in flows(result)}
    stopped = expected_flows(expected["blocked"], "where")
    for flow in sorted(stopped, key=str):
        yield from not_stopped(flow, results.get(flow), stopped[flow])
    unknown = expected_flows(expected.get("inconclusive", []), "reason")
    for flow in sorted(unknown, key=str):
        yield from not_inconclusive(flow, results.get(flow), unknown[flow])
    for flow in sorted(results.keys() - stopped.keys() - unknown.keys(), key=str):
        if results[flow]["verdict"] != "pass":
            yield f"{flow}: {results[flow]['verdict']}, but nothing stops it"
    counted = sum(flow.requirement != ADDED for flow in results)
    yield from differing("flows", counted, expected["flows"])
    skipped = sorted({item["requirement"] for item in run["skipped"]})
    yield from differing("skipped requirements", skipped, sorted(expected["skipped"]))


def not_stopped(flow: Flow, result: dict[str, Any] | None, place: str) -> Iterator[str]:
    """What is wrong with the result of a flow that the firewall stops at this place."""
    if result is None:
        yield f"{flow}: not in the report, but the firewall stops it"
    elif result["verdict"] != "blocked":
        yield f"{flow}: {result['verdict']}, but the firewall stops it"
    elif place not in result["where"]:
        yield f"{flow}: where is {result['where']}, without the true place, {place}"


def not_inconclusive(flow: Flow, result: dict[str, Any] | None, reason: str) -> Iterator[str]:
    """What is wrong with the result of an open flow whose service netprobe cannot know."""
    if result is None:
        yield f"{flow}: not in the report, but something answers it"
    elif (result["verdict"], result["reason"]) != ("inconclusive", reason):
        got = f"{result['verdict']} ({result['reason']})"
        yield f"{flow}: {got}, expected inconclusive ({reason})"


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


def expected_flows(items: Iterable[dict[str, Any]], key: str) -> dict[Flow, str]:
    """Each flow of a list of expected.yaml, and the value that its item has for ``key``."""
    found = {}
    for item in items:
        for source, destination in item["flows"]:
            for port in ports(item.get("ports")):
                flow = Flow(item["requirement"], source, destination, item["protocol"], port)
                found[flow] = item[key]
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
