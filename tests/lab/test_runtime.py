"""Hosts that hold nothing but busybox: they get a Python, and are as good as any other host."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import re
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from netprobe.errors import AgentError
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.runtime.cache import Runtimes
from netprobe.vantage.runtime.file import Runtime
from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab
from tests.needs import skip
from tests.patience import PATIENCE_S, until
from tests.vantage.runtime.support import (
    EVERYWHERE,
    BusyboxRoot,
    has_busybox,
    session_runtime,
    take_own_prefix,
)
from tests.vantage.support import HOST, KEY

pytestmark = pytest.mark.slow

FLOWS = {"tcp": [22, 6443, 10250, "7000-7007"], "udp": [53, 8472], "icmp": "echo"}
HOSTS = {"a": "10.98.0.1", "b": "10.98.0.2", "c": "10.98.0.3"}
RULES = """table inet lab { chain forward { type filter hook forward priority 0;
ip saddr 10.98.0.1 ip daddr 10.98.0.2 tcp dport 6443 drop
ip saddr 10.98.0.3 ip daddr 10.98.0.1 udp dport 8472 reject
ip saddr 10.98.0.2 ip daddr 10.98.0.3 icmp type echo-request drop
}
}"""
TOLD = ("requirement", "source", "destination", "address", "protocol", "port", "end_port",
        "verdict", "state", "reason", "where", "proof")  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def static_busybox() -> None:
    """A busybox that needs no library."""
    if not has_busybox():
        skip("no static busybox", "Debian's busybox-static")


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Runtime:
    """The runtime of this Python."""
    return session_runtime(tmp_path_factory)


@pytest.fixture
def machines(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BusyboxRoot]]:
    """Machines that end with the test; some share a folder of memory with this one."""
    take_own_prefix(monkeypatch)
    made: list[BusyboxRoot] = []
    yield made
    for one in made:
        one.close()


async def words_of(machine: BusyboxRoot, runtime: Runtime) -> str:
    """Why no agent starts there; then nothing is left there either."""
    async with Launcher(runtimes=Runtimes([runtime])) as launcher:
        with pytest.raises(AgentError) as caught:
            await start_agent(machine.host, HOST, key=KEY, launcher=launcher)
    assert caught.value.reason == "no-python"
    assert machine.left() == []
    return str(caught.value)


def cut_program(runtime: Runtime, name: str, size: int) -> Runtime:
    """The runtime with only so many bytes of one of its programs."""
    made = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(gzip.decompress(runtime.payload))) as old,
        tarfile.open(fileobj=made, mode="w") as new,
    ):
        for member in old:
            file = old.extractfile(member)
            content = b"" if file is None else file.read()
            if member.name == name:
                content, member.size = content[:size], size
            new.addfile(member, io.BytesIO(content))
    return replace(runtime, payload=gzip.compress(made.getvalue(), 0))


async def test_kill_9_on_a_machine_with_busybox_only(
    machines: list[BusyboxRoot], runtime: Runtime
) -> None:
    """It runs in /run, which is a tmpfs, and nothing is left of it: after the end, after kill -9 of
    the agent, and after the connection is cut."""
    machines.append(BusyboxRoot())
    (machine,) = machines
    async with Launcher(runtimes=Runtimes([runtime])) as launcher:
        for how in ("end", "kill", "cut"):
            link = await start_agent(machine.host, HOST, key=KEY, launcher=launcher)
            (folder,) = machine.left()
            assert folder.startswith("/run/")
            assert link.is_python_sent
            assert link.hello.python == runtime.manifest.python
            if how == "kill":
                os.kill(link.hello.pid, signal.SIGKILL)
            elif how == "cut":
                os.killpg(link.pid, signal.SIGKILL)
            if how != "end":
                with pytest.raises(AgentError):
                    await asyncio.wait_for(asyncio.shield(link.lost), PATIENCE_S)
            else:
                await link.close()
            await until(lambda: machine.left() == [])
            await link.close()


async def test_noexec_is_named(machines: list[BusyboxRoot], runtime: Runtime) -> None:
    """Every folder is tried, and each is named with what is wrong with it."""
    machines.append(BusyboxRoot("noexec", EVERYWHERE))
    words = await words_of(machines[0], runtime)
    every = ", ".join(f"{place} (noexec)" for place in (*EVERYWHERE[:3], "/root", *EVERYWHERE[3:5]))
    ways = (
        r"make \d+ MB free in one of them, or mount one of them without noexec; or install python3"
    )
    assert re.search(f"it fits nowhere: {re.escape(every)}; {ways}", words)


async def test_no_room_is_named(machines: list[BusyboxRoot], runtime: Runtime) -> None:
    """A full tmpfs, before anything is sent to it."""
    machines.append(BusyboxRoot("size=4m", EVERYWHERE))
    assert "it fits nowhere: /run (no room), /dev/shm (no room)" in await words_of(
        machines[0], runtime
    )


async def test_the_next_folder_is_taken(machines: list[BusyboxRoot], runtime: Runtime) -> None:
    """/run is noexec, as Debian mounts it: another one does."""
    machines.append(BusyboxRoot("noexec", ("/run",)))
    async with Launcher(runtimes=Runtimes([runtime])) as launcher:
        link = await start_agent(machines[0].host, HOST, key=KEY, launcher=launcher)
        assert [Path(one).parent for one in machines[0].left()] != [Path("/run")]
        await link.close()
    assert machines[0].left() == []


@pytest.mark.parametrize("name", ["ld.so", "bin/python"])
async def test_what_does_not_start_is_named(
    machines: list[BusyboxRoot], runtime: Runtime, name: str
) -> None:
    """A program for another machine, or half of one."""
    machines.append(BusyboxRoot())
    words = await words_of(machines[0], cut_program(runtime, name, 4096))
    machine = os.uname().machine
    assert re.search(r"it does not start in /run/[\w-]+ \(status \d+.*; it is for ", words)
    assert f"it is for {runtime.arch}, the host is {machine}): build one on a machine like" in words


@pytest.fixture(scope="module")
def estate() -> Iterator[Lab]:
    """Three hosts around a router with a firewall."""
    with Lab() as lab:
        router = lab.router("fw", "10.98.9.1")
        for name, address in HOSTS.items():
            lab.host(name, router, address)
        lab.wait_until_ready()
        router.nft(RULES)
        yield lab


def probed(lab: Lab, runtime: Path, ways: dict[str, list[str]]) -> Finished:
    """Run all flows between the hosts, whose agents start these ways."""
    line = {"from": "node", "to": "node", "purpose": "p", "row": "r"}
    matrix = {
        "schema": "netprobe.matrix/1", "name": "m", "title": "M", "roles": {"node": {}},
        "requirements": [{"id": "all", **line, **FLOWS}],
    }  # fmt: skip
    lab.write("m.yaml", json.dumps(matrix))
    over: dict[str, dict[str, object]] = {
        name: {"vantage": {"command": words}} for name, words in ways.items()
    }
    inventory = lab.inventory({name: ["node"] for name in HOSTS}, overrides=over)
    words = ("-m", str(lab.folder / "m.yaml"), "-i", str(inventory), "-o", "json")
    return netprobe("run", *words, "--agent-python", str(runtime))


def test_verdicts_are_those_of_hosts_with_a_python(
    estate: Lab, machines: list[BusyboxRoot], runtime: Runtime, tmp_path: Path
) -> None:
    """The same flows pass, are blocked and are open, for the same reasons, at the same places."""
    (tmp_path / "runtime").write_bytes(runtime.payload)
    ways: dict[str, list[str]] = {}
    for name in ("a", "c"):
        machines.append(BusyboxRoot(within=estate[name].enter))
        ways[name] = machines[-1].enter
    plain, lean = (
        probed(estate, tmp_path / "runtime", {}),
        probed(estate, tmp_path / "runtime", ways),
    )
    told = [
        sorted(json.dumps([one[key] for key in TOLD]) for one in run.results)
        for run in (plain, lean)
    ]
    assert told[0] == told[1]
    verdicts = {(one["source"], one["destination"], one["protocol"]) for one in lean.results
                if one["verdict"] == "blocked"}  # fmt: skip
    assert verdicts == {("a", "b", "tcp"), ("c", "a", "udp"), ("b", "c", "icmp")}
    hosts = {host["name"]: host["facts"].get("python_sent") for host in lean.document["hosts"]}
    assert hosts == {"a": True, "b": None, "c": True}
    assert [machine.left() for machine in machines] == [[], []]
