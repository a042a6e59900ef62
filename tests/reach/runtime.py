"""The long form of "a Python that travels": ``python -m tests.reach.runtime`` (root).

The demo's estate with three of its eight hosts holding nothing but busybox, deaths of all kinds
over a real sshd, and every Python of this machine as the source of a runtime.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from demo import estate
from netprobe.agent.wire.host_messages import Routed, RouteOrder
from netprobe.errors import AgentError, NetprobeError
from netprobe.model.inventory import Host, Ssh
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.link import AgentLink
from netprobe.vantage.runtime.build import build_runtime
from netprobe.vantage.runtime.cache import Runtimes, keep_runtime
from netprobe.vantage.runtime.file import Runtime
from tests.agent.interpreters import INTERPRETERS
from tests.lab.cli import ROOT, Finished, environment, netprobe
from tests.lab.netlab import Lab
from tests.rights import lack_of
from tests.vantage.runtime.support import BusyboxRoot, has_busybox
from tests.vantage.sshd import Sshd, client_config
from tests.vantage.support import HOST, KEY, ssh

LEAN = ("master-1", "worker-1", "frontend-0")
TOLD = ("requirement", "source", "destination", "address", "protocol", "verdict", "state", "reason")
# Of one version, the interpreters of the other tests are one.
DISTRIBUTIONS_OWN = "/usr/bin/python3"
STARTS = 20
READY_S = 1.0
ROUNDS = 3
GONE_S = 10.0

COORDINATOR = """
import asyncio, sys
from netprobe.vantage.launch import Launcher, start_agent
from netprobe.vantage.runtime.cache import Runtimes
from netprobe.vantage.runtime.file import load_runtime
from tests.vantage.support import KEY, command

async def main():
    runtimes = Runtimes([load_runtime(sys.argv[1])])
    async with Launcher(runtimes=runtimes, silence_s=2.0) as launcher:
        link = await start_agent(command(*sys.argv[2:]), 1, key=KEY, launcher=launcher)
        print(link.hello.pid, flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


def main() -> int:
    """Run all parts; 0 where every one is as it should be."""
    lack = lack_of("namespaces")
    if lack is not None or not has_busybox():
        print(f"SKIPPED: {lack or 'no static busybox (Debian: busybox-static)'}")
        return 0
    begin = time.monotonic()
    runtime = build_runtime()
    print(
        f"built in {time.monotonic() - begin:.1f} s: Python {runtime.manifest.python}, "
        f"{len(runtime.payload):,} bytes, unpacked {runtime.unpacked_bytes:,}"
    )
    with tempfile.TemporaryDirectory(prefix="netprobe-reach-") as name:
        path = Path(name) / "runtime.tar.gz"
        keep_runtime(runtime, path)
        parts: tuple[Callable[[], bool], ...] = (
            lambda: asyncio.run(measure_starts(runtime)),
            lambda: asyncio.run(try_deaths(runtime, Path(name))),
            lambda: asyncio.run(try_coordinators(path)),
            lambda: asyncio.run(try_sources()),
            lambda: compare_verdicts(path),
        )
        fine = [part() for part in parts]
    print("RUNTIME OK" if all(fine) else "RUNTIME FAILED")
    return 0 if all(fine) else 1


def tell(fine: bool, words: str) -> bool:
    """Print one line, and give what it says."""
    print(f"{'ok    ' if fine else 'FAILED'} {words}", flush=True)
    return fine


@contextmanager
def machine(within: tuple[str, ...] = ()) -> Iterator[BusyboxRoot]:
    """A machine with busybox only."""
    made = BusyboxRoot(within=within)
    try:
        yield made
    finally:
        made.close()


async def measure_starts(runtime: Runtime) -> bool:
    """Both starts together: the one that finds no Python, and the one that brings it."""
    with machine() as lean:
        async with Launcher(runtimes=Runtimes([runtime])) as launcher:
            took = []
            for _ in range(STARTS):
                begin = time.monotonic()
                link = await start_agent(lean.host, HOST, key=KEY, launcher=launcher)
                took.append(time.monotonic() - begin)
                await link.close()
    median, longest = statistics.median(took), max(took)
    words = f"{STARTS} starts: hello after {median:.2f} s (median), {longest:.2f} s at most"
    return tell(median < READY_S, words)


async def try_deaths(runtime: Runtime, folder: Path) -> bool:
    """Over a real sshd, whose sessions run on a machine with busybox only."""
    fine = True
    with machine() as lean:
        enter = " ".join(lean.enter)
        sshd = Sshd(folder, "lean", force=f'exec {enter} sh -c "$SSH_ORIGINAL_COMMAND"')
        config = client_config(folder, sshd)
        host = ssh(Ssh("lean", options=("-F", str(config))))
        try:
            for how in ("the end", "kill -9 of the agent", "kill -9 of all its shells",
                        "a cut connection", "ssh's sessions killed"):  # fmt: skip
                for _ in range(ROUNDS):
                    fine &= await die_once(host, lean, runtime, sshd, how)
        finally:
            sshd.stop()
    return tell(fine, f"over ssh: {ROUNDS} times each of 5 deaths, nothing left")


async def die_once(host: Host, lean: BusyboxRoot, runtime: Runtime, sshd: Sshd, how: str) -> bool:
    """Start an agent and let it die; whether nothing of it is left on the machine."""
    async with Launcher(runtimes=Runtimes([runtime])) as launcher:
        link = await start_agent(host, HOST, key=KEY, launcher=launcher)
        assert len(lean.left()) == 1
        await carry_out(link, lean, how)
        gone = await asyncio.to_thread(wait_until_gone, [lean])
        await link.close()
    return gone or tell(False, f"after {how} there is {lean.left()}")


async def carry_out(link: AgentLink, lean: BusyboxRoot, how: str) -> None:
    """Bring the death about."""
    if how == "the end":
        await link.close()
    elif how == "kill -9 of the agent":
        os.kill(link.hello.pid, signal.SIGKILL)
    elif how == "kill -9 of all its shells":
        os.killpg(os.getpgid(link.hello.pid), signal.SIGKILL)
    elif how == "a cut connection":
        link.kill()
    else:
        for pid in ancestors_of(link.hello.pid, "sshd"):
            os.kill(pid, signal.SIGKILL)


def ancestors_of(pid: int, name: str) -> list[int]:
    """The processes above this one that have the name, without the server itself."""
    found = []
    while pid > 1:
        if Path(f"/proc/{pid}/comm").read_text().startswith(name):
            found.append(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return found[:-1]


async def try_coordinators(runtime: Path) -> bool:
    """A coordinator that is killed, and one that falls silent as behind a dead network."""
    fine = True
    with machine() as lean:
        for number in (signal.SIGKILL, signal.SIGSTOP):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", COORDINATOR, str(runtime), *lean.enter),
                stdout=asyncio.subprocess.PIPE, cwd=ROOT,
            )  # fmt: skip
            assert process.stdout is not None
            await process.stdout.readline()
            assert len(lean.left()) == 1
            process.send_signal(number)
            fine &= await asyncio.to_thread(wait_until_gone, [lean])
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return tell(fine, "a coordinator killed, and one stopped (silence 2 s): nothing left")


async def try_sources() -> bool:
    """Every Python of this machine becomes a runtime, and runs an agent."""
    fine = True
    with machine() as lean:
        paths = dict.fromkeys((*INTERPRETERS.values(), DISTRIBUTIONS_OWN))
        for path in filter(os.path.exists, paths):
            try:
                runtime = build_runtime(path)
                async with Launcher(runtimes=Runtimes([runtime])) as launcher:
                    link = await start_agent(lean.host, HOST, key=KEY, launcher=launcher)
                    await link.request(RouteOrder(0, "127.0.0.1", None), Routed)
                    await link.close()
            except (NetprobeError, AgentError) as error:
                fine = tell(False, f"{path}: {error}")
                continue
            size = f"{len(runtime.payload):,} bytes"
            is_right = link.hello.python == runtime.manifest.python and not lean.left()
            fine &= tell(is_right, f"{path}: Python {link.hello.python}, {size}")
    return fine


def compare_verdicts(runtime: Path) -> bool:
    """The demo's estate twice: all hosts with a Python, and three with busybox only."""
    with Lab() as lab:
        estate.build(lab)
        lean = {name: BusyboxRoot(within=lab[name].enter) for name in LEAN}
        try:
            plain = run_estate(lab, runtime, {})
            ways: dict[str, dict[str, object]] = {
                name: {"vantage": {"command": one.enter}} for name, one in lean.items()
            }
            mixed = run_estate(lab, runtime, ways)
            left = [path for one in lean.values() for path in one.left()]
            kill_run(lab, runtime)
            cut = wait_until_gone(lean.values())
        finally:
            for one in lean.values():
                one.close()
    every, stopped = estate.expected()
    told = flows(plain), flows(mixed)
    known = told[0].keys() | told[1].keys()
    differing = {flow for flow in known if told[0].get(flow) != told[1].get(flow)}
    blocked = {flow for flow, words in told[1].items() if words[0] == "blocked"}
    sent = [host["name"] for host in mixed.document["hosts"] if host["facts"].get("python_sent")]
    fine = tell(sorted(sent) == sorted(LEAN), f"a Python was sent to {', '.join(sent)}")
    fine &= tell(len(blocked) == len(stopped),
                 f"{len(every):,} flows of the demo: {len(blocked):,} blocked of "
                 f"{len(stopped):,} that the firewall stops")  # fmt: skip
    fine &= tell(not differing, f"{len(differing)} flows with another verdict than with Pythons")
    for flow in sorted(differing, key=str)[:5]:
        print("      ", flow, told[0].get(flow), told[1].get(flow))
    return tell(not left and cut, "nothing left after both, and after kill -9 of a run") and fine


def run_estate(lab: Lab, runtime: Path, overrides: dict[str, dict[str, object]]) -> Finished:
    """Run the demo's matrix in full."""
    inventory = lab.inventory(estate.ROLES, overrides=overrides)
    words = ("--matrix", estate.MATRIX, "-i", str(inventory), "-o", "json")
    begin = time.monotonic()
    done = netprobe("run", *words, "--agent-python", str(runtime))
    print(f"       run with {len(overrides)} lean hosts: {time.monotonic() - begin:.1f} s")
    return done


def kill_run(lab: Lab, runtime: Path) -> None:
    """Kill a run in its middle."""
    words = ("--matrix", estate.MATRIX, "-i", str(lab.folder / "inventory.yaml"), "-v")
    process = subprocess.Popen(
        [sys.executable, "-m", "netprobe", "run", *words, "--agent-python", str(runtime)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    assert process.stderr is not None
    while b" flows (" not in (line := process.stderr.readline()) and line:
        pass
    process.kill()
    process.communicate()


def wait_until_gone(machines: Iterable[BusyboxRoot]) -> bool:
    """Whether the machines hold nothing of a runtime, in the end."""
    late = time.monotonic() + GONE_S
    while any(one.left() for one in machines):
        if time.monotonic() > late:
            return False
        time.sleep(0.02)
    return True


def flows(done: Finished) -> dict[tuple[Any, ...], tuple[str, ...]]:
    """Verdict, state and reason of every port of every pair."""
    told: dict[tuple[Any, ...], tuple[str, ...]] = {}
    for one in done.results:
        first = one["port"]
        for port in (None,) if first is None else range(first, one["end_port"] + 1):
            flow = tuple(one[key] for key in TOLD[:5])
            told[(*flow, port)] = tuple(str(one[key]) for key in TOLD[5:])
    return told


if __name__ == "__main__":
    sys.exit(main())
