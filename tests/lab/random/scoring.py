"""Hold what netprobe said against the truth.

* A ``wrong name``: ``rejected_by`` sent the source no error.
* A pass that could not be known to be false is undecided: a destination without an agent whose own
  firewall refuses, or in whose name another host answers (unless a refusal crossed other routers
  than its echo replies); a live service that takes the connection but not data.
* An address on which a foreign service holds the port is right as ``port-taken``, or
  ``unknown-holder`` without an agent, though packets pass.
* Of a port that is held on loopback only the truth is that of the flow's own address, where nothing
  listens yet.
* Of two causes either is right: a dead host stops a flow wherever its packets end, and a source's
  own rule meets it before its dead neighbour is asked for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.lab.cli import Finished, netprobe, netprobe_of
from tests.lab.netlab import unprivileged
from tests.lab.random.build import Built
from tests.lab.random.estate import Estate, Flow, Held
from tests.lab.random.truth import Truth

WRONG_SCORES = ("false pass", "false blocked", "wrong place", "wrong name")
WRONG = frozenset(WRONG_SCORES)
UNPRIVILEGED_PORT = 1024
# Without an agent there it is not known whether it is the service that is meant.
HELD_REASONS = ("port-taken", "unknown-holder")
# Who of both ends has a recorder.
WATCHES = (
    "recorders at both", "recorder at source", "no recorder", "recorder at destination"
)  # fmt: skip
ENDS = ("destination with agent", "without agent")


@dataclass(frozen=True)
class Scored:
    """One flow: the truth, netprobe's result, and the score."""

    seed: int
    flow: Flow
    watch: str
    agent: bool
    truth: Truth
    result: dict[str, Any] | None
    score: str
    note: str = ""

    def line(self) -> str:
        """For people."""
        said = self.result
        words = "nothing"
        if said is not None:
            by = f" rejected by {said['rejected_by']}" if said["rejected_by"] else ""
            words = (f"{said['verdict']} {said['reason']} {said['proof']} "
                     f"[{', '.join(said['where'])}]{by}: {said['because']}")  # fmt: skip
        return (f"{self.score:13} seed {self.seed} {self.flow} ({self.watch}) truth {self.truth}\n"
                f"              {self.note + ': ' if self.note else ''}{words}")  # fmt: skip


def ask_netprobe(built: Built, checkout: Path | None = None) -> Finished:
    """One ``netprobe run`` over the estate; ``checkout``: of another checkout than this one."""
    estate = built.estate
    matrix = {
        "schema": "netprobe.matrix/1", "name": "random", "title": "A random estate",
        "roles": {host.name: {} for host in estate.hosts},
        "requirements": [_requirement(one) for one in estate.requirements],
    }  # fmt: skip
    hosts = {
        host.name: {
            "addresses": [host.address(4), host.address(6)],
            "roles": [host.name],
            "vantage": _vantage(built, host.name, host.agent),
        }
        for host in estate.hosts
    }
    inventory = {"schema": "netprobe.inventory/1", "hosts": hosts}
    words = (
        "run", "-o", "json",
        "-m", str(built.lab.write("matrix.yaml", json.dumps(matrix))),
        "-i", str(built.lab.write("inventory.yaml", yaml.safe_dump(inventory))),
    )  # fmt: skip
    done = netprobe(*words) if checkout is None else netprobe_of(checkout, *words)
    assert done.status in (0, 1, 3), f"status {done.status}: {done.stderr}"
    return done


def _requirement(one: Any) -> dict[str, Any]:
    what = {"icmp": "echo"} if one.protocol == "icmp" else {one.protocol: list(one.ports)}
    return {"id": one.name, "from": one.source, "to": one.destination, "purpose": "p", "row": "r",
            "expect": one.expect, **what}  # fmt: skip


def _vantage(built: Built, name: str, agent: str) -> object:
    if agent == "none":
        return "none"
    return {"command": [*built.lab[name].enter, *(unprivileged() if agent == "nobody" else ())]}


def score_all(
    estate: Estate, before: Mapping[Flow, Truth], after: Mapping[Flow, Truth], said: Finished
) -> tuple[list[Scored], list[str]]:
    """The score of every flow whose truth held, and a line for each that changed."""
    results = {(r["source"], r["address"], r["protocol"], r["port"] or 0): r for r in said.results}
    scored, changed = [], []
    for flow, truth in before.items():
        if truth.same(after[flow]):
            address = estate[flow.destination].address(flow.family)
            result = results.get((flow.source, address, flow.protocol, flow.port))
            score, note = judge(estate, flow, truth, result)
            scored.append(
                Scored(
                    estate.seed,
                    flow,
                    watch(estate, flow),
                    estate[flow.destination].agent != "none",
                    truth,
                    result,
                    score,
                    note,
                )
            )
        else:
            changed.append(f"changed       seed {estate.seed} {flow}: {truth}, then {after[flow]}")
    return scored, changed


def watch(estate: Estate, flow: Flow) -> str:
    """Which ends have a recorder."""
    source, far = (estate[name].agent == "root" for name in (flow.source, flow.destination))
    return {
        (True, True): WATCHES[0],
        (True, False): WATCHES[1],
        (False, True): WATCHES[3],
    }.get((source, far), WATCHES[2])


def judge(
    estate: Estate, flow: Flow, truth: Truth, result: dict[str, Any] | None
) -> tuple[str, str]:
    """The score, and a note."""
    if result is None:
        return "undecided", "no result"
    verdict = result["verdict"]
    if truth.passes:
        return _judge_open(estate, flow, result)
    # An open port without an agent is the service's doubt, and was a pass before.
    seems_open = verdict == "pass" or result["reason"] == "unknown-holder"
    if seems_open and _unknowable(estate, flow, truth, result):
        return "undecided", "nobody can know"
    if verdict in ("pass", "not-tested"):
        return ("false pass" if verdict == "pass" else "undecided"), ""
    return _judge_place(truth, result, frozenset(result["where"]))


def _judge_open(estate: Estate, flow: Flow, result: dict[str, Any]) -> tuple[str, str]:
    """The score where packets pass."""
    verdict = result["verdict"]
    if result["reason"] in HELD_REASONS and _is_held(estate, flow):
        return "exact", "its packets pass, and a service of somebody else is in the way"
    if verdict == "inconclusive" and _is_held(estate, flow, loopback=True):
        # Whether its program would take the flow's address, too, no key of the row says.
        return ("exact" if result["where"] == ["service"] else "undecided"), ""
    return {"pass": "exact", "blocked": "false blocked"}.get(verdict, "undecided"), ""


def _judge_place(truth: Truth, result: dict[str, Any], where: frozenset[str]) -> tuple[str, str]:
    if where == truth.places or where in truth.also:
        name = result["rejected_by"]
        if name is not None and name not in truth.names:
            return "wrong name", f"rejected_by {name}, truth {sorted(truth.names) or 'nobody'}"
        if result["verdict"] == "blocked" or truth.places == {"service"}:
            return "exact", ""
        return "undecided", ""
    return ("undecided", "") if truth.places <= where else ("wrong place", "")


def _unknowable(estate: Estate, flow: Flow, truth: Truth, result: dict[str, Any]) -> bool:
    """Whether an open or free port is what everybody would see without data and without an agent.

    A destination's firewall that refuses looks like its free port; a live service gets no data;
    without an agent there, another host that answers in its name looks like it.
    """
    agent = estate[flow.destination].agent
    # Any host answers an echo, and below 1024 only root may listen.
    alone = agent == "none" or (agent == "nobody" and flow.port < UNPRIVILEGED_PORT)
    if not alone and not _is_held(estate, flow):
        return False
    # A request that was refused shows nothing of the answers that a service would give.
    answered = truth.places == {"destination"} or truth.leg == "A"
    refused = result["proof"] == "refusal"
    if refused and truth.odd:
        return False  # other answers of the destination show it
    return (refused and answered) or truth.opened or (alone and truth.other)


def _is_held(estate: Estate, flow: Flow, *, loopback: bool = False) -> bool:
    """Whether a service of the destination, which no requirement names, holds the port."""
    return any(
        isinstance(f, Held) and (f.on == "loopback") == loopback
        and (f.flow.destination, f.flow.port) == (flow.destination, flow.port)
        for f in estate.faults
    )  # fmt: skip


def table(scored: Iterable[Scored], changed: int, failed: int = 0) -> list[str]:
    """The printed table, a line a row: by who records, and by whether the destination has an agent.

    Counts of all scores, and the shares of those that are neither wrong.
    """
    counts: dict[str, Counter[str]] = {name: Counter() for name in (*WATCHES, *ENDS, "all")}
    for one in scored:
        for row in (one.watch, ENDS[not one.agent], "all"):
            counts[row][one.score] += 1
    heads = "".join(f"{name:>15}" for name in WRONG_SCORES) + f"{'undecided':>12}{'exact':>10}"
    lines = [f"{'':24}{'flows':>6}{heads}"]
    for row, count in counts.items():
        total = sum(count.values())
        if total:
            wrong = "".join(f"{count[name]:15}" for name in WRONG_SCORES)
            undecided, exact = (100 * count[name] / total for name in ("undecided", "exact"))
            lines.append(f"{row:24}{total:6}{wrong}{undecided:10.1f} %{exact:8.1f} %")
    lines.append(
        f"{changed} flows left out: their truth changed meanwhile; {failed} estates failed"
    )
    return lines
