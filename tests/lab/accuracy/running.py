"""Runs netprobe over a batch of cases and gives what it said of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import yaml

from tests.lab.accuracy.batches import pack
from tests.lab.accuracy.cases import Case
from tests.lab.accuracy.topology import CONTROL_PORT, PORT, SOURCE, Chain, build, hosts
from tests.lab.cli import netprobe
from tests.lab.netlab import Lab, unprivileged

# One case and protocol → its address, and what was said of it in netprobe's words.
Answers = dict[tuple[Case, str], tuple[str, dict[str, Any] | None]]
Ask = Callable[[Chain, list[Case], str], Answers]

_ROLES = ("src", "agent", "near-agent", "closed", "near-closed", "live", "down")
MATRIX = {
    "schema": "netprobe.matrix/1",
    "name": "accuracy",
    "title": "One port of every kind of destination",
    "roles": {role: {} for role in _ROLES},
    "requirements": [
        {"id": "tcp", "from": "src", "to": list(_ROLES[1:]), "tcp": [PORT]},
        {"id": "control", "from": "src", "to": ["closed", "near-closed"], "tcp": [CONTROL_PORT]},
        {"id": "udp", "from": "src", "to": [r for r in _ROLES[1:] if r != "live"], "udp": [PORT]},
        {"id": "udp-service", "from": "src", "to": ["live"], "udp": [PORT], "probe": "dns"},
        {"id": "icmp", "from": "src", "to": [r for r in _ROLES[1:] if r != "live"], "icmp": "echo"},
    ],
}


@contextmanager
def chains(cases: Iterable[Case], count: int) -> Iterator[list[tuple[Chain, list[list[Case]]]]]:
    """``count`` chains with the batches that each will run, one after another."""
    batches = pack(cases, count)
    with Lab() as lab:
        # Made here once: chains write into it from threads of their own.
        assert lab.folder.is_dir()
        yield [
            (build(lab, f"nac{n}", [case for batch in mine for case in batch]), mine)
            for n in range(count)
            if (mine := batches[n::count])
        ]


def everywhere(built: Sequence[tuple[Chain, list[list[Case]]]], ask: Ask) -> Answers:
    """Ask about every batch, all chains at once; gives all answers."""

    def one(item: tuple[Chain, list[list[Case]]]) -> Answers:
        chain, batches = item
        found: Answers = {}
        for number, batch in enumerate(batches):
            found.update(ask(chain, batch, f"{chain.name}-{number}"))
        return found

    with ThreadPoolExecutor(len(built)) as pool:
        answers: Answers = {}
        for some in pool.map(one, built):
            answers.update(some)
    return answers


def ask_netprobe(
    chain: Chain, cases: list[Case], label: str, *, privileged: bool = True
) -> Answers:
    """One ``netprobe run`` over a batch, as root on the hosts or as nobody."""
    matrix = chain.lab.write(f"{label}-matrix.yaml", json.dumps(MATRIX))
    inventory = chain.lab.write(f"{label}-inventory.yaml", _inventory(chain, cases, privileged))
    finished = netprobe("run", "-m", str(matrix), "-i", str(inventory), "-o", "json")
    if finished.status not in (0, 1, 3):
        raise AssertionError(f"netprobe ended with {finished.status}: {finished.stderr}")
    said = {
        (result["address"], result["protocol"]): result
        for result in finished.results
        if result["requirement"] != "control"
    }
    return {
        (case, protocol): (chain.cases[case], said.get((chain.cases[case], protocol)))
        for case in cases
        for protocol in case.protocols
    }


def _inventory(chain: Chain, cases: list[Case], privileged: bool) -> str:
    words = [] if privileged else unprivileged()
    entries: dict[str, object] = {
        "source": _entry("src", list(SOURCE), [*chain["source"].enter, *words])
    }
    for name, addresses in hosts(chain, cases).items():
        part = "neighbour" if name.startswith("near") else "destination"
        command = [*chain[part].enter, *words] if name.endswith("agent") else None
        entries[name] = _entry(name, addresses, command)
    return yaml.safe_dump({"schema": "netprobe.inventory/1", "hosts": entries}, sort_keys=False)


def _entry(role: str, addresses: list[str], command: list[str] | None) -> dict[str, object]:
    vantage: object = {"command": command} if command else "none"
    return {"addresses": addresses, "roles": [role], "vantage": vantage}
