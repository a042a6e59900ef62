"""The ways in which the lab is run: as root or as nobody, with loss, with busy cores, with nmap."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from tests.lab.accuracy.cases import Case
from tests.lab.accuracy.nmap import ask_nmap
from tests.lab.accuracy.running import Ask, ask_netprobe, chains, everywhere
from tests.lab.accuracy.scoring import Scored, scores
from tests.lab.accuracy.topology import lose
from tests.lab.netlab import without_root

CHAINS = 22
_SPIN = "import time\nend = time.monotonic() + {limit_s}\nwhile time.monotonic() < end: pass"
SPIN_S = 300
PING_GROUPS = "net.ipv4.ping_group_range"


def with_netprobe(
    cases: Iterable[Case], *, privileged: bool = True, loss: float = 0.0, count: int = CHAINS
) -> list[Scored]:
    """netprobe's scores; its agents run as root or as nobody, router 1 loses ``loss`` each way."""
    ask = partial(ask_netprobe, privileged=privileged)
    return _run(cases, ask, captures=privileged, loss=loss, count=count)


def with_nmap(cases: Iterable[Case], *, count: int = CHAINS) -> list[Scored]:
    """nmap's scores for verdict, place and rejecter; held against what an agent could know."""
    return _run(cases, ask_nmap, captures=True, loss=0.0, count=count)


def _run(
    cases: Iterable[Case], ask: Ask, *, captures: bool, loss: float, count: int
) -> list[Scored]:
    last_group = 0 if without_root() else 2**31 - 1
    with chains(cases, count) as built:
        for chain, _ in built:
            if loss:
                lose(chain, loss)
            if not captures:
                # As systemd sets it. With Debian's own `1 0` an agent without rights has to read
                # what the ping program prints.
                chain["source"].run("sysctl", "-q", "-w", f"{PING_GROUPS}=0 {last_group}")
        return scores(everywhere(built, ask), captures, words=ask is not ask_nmap)


@contextmanager
def busy(loops: int) -> Iterator[None]:
    """So many processes that use all the time of a core each; they end by themselves if need be."""
    code = _SPIN.format(limit_s=SPIN_S)
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(loops)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
