"""The long form of a host's side of batch runs: ``python -m tests.reach.batch_host`` (root).

Deaths at any moment of a run, hosts with busybox only, large results cut and changed anywhere, and
what a step costs.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec.structs import replace

from netprobe.agent.wire.answers import Done
from netprobe.agent.wire.batch import PhaseClock
from netprobe.agent.wire.result_lines import LineMaker
from netprobe.batch.checked_lines import ResultsRefused
from netprobe.batch.results import read_results
from netprobe.vantage.runtime.build import build_runtime
from tests.batch.engine import Engine
from tests.batch.support import FOUND, HELLO, IDENTITY, header, outcomes_of, result_key
from tests.ports import free_port
from tests.rights import lack_of
from tests.vantage.runtime.support import BusyboxRoot, has_busybox
from tests.vantage.support import is_running, probe

STEPS = ("start", "go", "wait", "collect")
DEATHS = 40
CUTS = 100
HOSTS = 40
GONE_S = 10.0
SEED = 15


def main() -> int:
    """Run all parts; 0 where every one is as it should be."""
    lack = lack_of("namespaces")
    if lack is not None or not has_busybox():
        print(f"SKIPPED: {lack or 'no static busybox (Debian: busybox-static)'}")
        return 0
    parts: tuple[Callable[[Path], bool], ...] = (
        _die_anywhere, _run_on_busybox, _cut_and_change, _measure_steps,
    )  # fmt: skip
    wrong = 0
    for part in parts:
        with tempfile.TemporaryDirectory(prefix="netprobe-reach-") as name:
            wrong += not part(Path(name))
    print("batch, on the host: OK" if not wrong else f"batch, on the host: {wrong} parts WRONG")
    return 1 if wrong else 0


def _die_anywhere(folder: Path) -> bool:
    """Kill agents at random moments, while the engine goes on with its steps."""
    dice = random.Random(SEED)
    left = 0
    lasting = 0
    for number in range(DEATHS):
        engine = Engine(folder / str(number), free_port())
        moment_s = dice.random() * 0.8
        killer = threading.Thread(target=_kill_later, args=(engine, moment_s))
        killer.start()
        for step in STEPS:
            engine.run(step)
        killer.join()
        found = read_results(engine.results, replace(IDENTITY, run=engine.run_id), host="node-1")
        lasting += not found.is_cut
        late = time.monotonic() + GONE_S
        while engine.left() and time.monotonic() < late and not _is_whole(engine):
            time.sleep(0.02)
        left += bool(engine.left()) and not _is_whole(engine)
        engine.run("stop")
        left += bool(engine.left())
    print(
        f"{DEATHS} agents killed within 0.8 s of their start (seed {SEED}): {left} left anything, "
        f"{lasting} had told everything before"
    )
    return not left


def _kill_later(engine: Engine, moment_s: float) -> None:
    late = time.monotonic() + GONE_S
    while not engine.left() and time.monotonic() < late:
        time.sleep(0.005)
    time.sleep(moment_s)
    with contextlib.suppress(OSError, IndexError, ValueError):
        os.kill(engine.pid(), signal.SIGKILL)


def _is_whole(engine: Engine) -> bool:
    """Whether the agent lives on: it was through before the kill."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        return is_running(engine.pid())
    return False


def _run_on_busybox(folder: Path) -> bool:
    """Run on a root without Python, in order and killed."""
    runtime = build_runtime()
    root = BusyboxRoot()
    try:
        words = (*root.enter, "sh", "-c")
        engine = Engine(folder / "a", free_port(), words=words, runtime=runtime)
        first = engine.run("start").returncode
        began = time.monotonic()
        engine.steps("start-runtime")
        started_s = time.monotonic() - began
        engine.steps("go", "wait", "collect", "stop")
        told = outcomes_of(engine.read()) == FOUND
        late = time.monotonic() + GONE_S
        while root.left() and time.monotonic() < late:
            time.sleep(0.02)
        kept = root.left()
    finally:
        root.close()
    print(
        f"busybox only: start {first}, with a Python {started_s:.2f} s, the same outcomes: {told}, "
        f"left: {kept or 'nothing'}"
    )
    return first == 97 and told and not kept


def _write_large() -> bytes:
    maker = LineMaker(result_key())
    lines = [maker.begin(header()), maker.add([HELLO, PhaseClock(1, "begin", 1.0)])]
    for number in range(1, 2000):
        order = probe(number, "tcp", "192.0.2.1", [(number, number)])
        lines.append(maker.add([order, Done(number, cancelled=False)]))
    lines.append(maker.add([PhaseClock(1, "told", 2.0), PhaseClock(1, "end", 2.0)]))
    return b"".join(lines)


def _cut_and_change(_folder: Path) -> bool:
    """Cut large results anywhere, change a byte anywhere: what is read is what was written."""
    dice = random.Random(SEED)
    whole = _write_large()
    genuine = read_results([whole], IDENTITY).orders
    refused = short = wrong = 0
    for _ in range(CUTS):
        at = dice.randrange(len(whole))
        found = read_results([whole[:at]], IDENTITY, host="node-1")
        wrong += found.orders != genuine[: len(found.orders)] or not found.is_cut
        try:
            changed = whole[:at] + bytes([whole[at] ^ dice.randrange(1, 256)]) + whole[at + 1 :]
            short += read_results([changed], IDENTITY, host="node-1").is_cut
        except ResultsRefused:
            refused += 1
    print(
        f"{len(whole):,} bytes, {CUTS} cuts and as many changed bytes (seed {SEED}): {refused} "
        f"refused, {short} read as cut, {wrong} wrong"
    )
    return not wrong and refused + short == CUTS


def _measure_steps(folder: Path) -> bool:
    """Measure what a whole run costs a host that has nothing to do, and its controller."""
    engines = [
        Engine(folder / str(number), free_port(), silence_s=600.0) for number in range(HOSTS)
    ]
    with _measuring() as spent:
        for step in (*STEPS, "stop"):
            for engine in engines:
                engine.steps(step)
    print(
        f"{HOSTS} runs of 5 steps on this machine: {spent['wall'] / HOSTS:.2f} s and "
        f"{spent['cpu'] / HOSTS * 1000:.0f} ms of processor a host for shells, without agents"
    )
    return not any(engine.left() for engine in engines)


@contextlib.contextmanager
def _measuring() -> Iterator[dict[str, float]]:
    spent: dict[str, float] = {}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    yield spent
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent["wall"] = time.monotonic() - began
    spent["cpu"] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
