"""The other scanners on the same targets, each tuned for speed, and what they said."""

from __future__ import annotations

import re
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.agent import Answers, children_cpu_s, run
from bench.field import FIRST_PORT, Field
from netprobe.agent.wire.orders import ProbeOrder

# The fastest that stays right on these targets: -T5 beats explicit --min-rate and
# --min-parallelism for connect scans, which it opens up by itself.
NMAP_TCP = ("-sT", "-n", "-Pn", "-T5")
NMAP_UDP = ("-sU", "-n", "-Pn", "-T5", "--min-rate", "100000", "--max-retries", "1")
MASSCAN = ("--rate", "200000", "--wait", "1", "--retries", "1")
FPING = ("-q", "-i", "0", "-p", "20", "-r", "1", "-t", "500")
NMAP_WORDS = {"open|filtered": "silent"}

_EXTRA = re.compile(r'<extraports state="([^"]+)" count="(\d+)"')
_PORT = re.compile(r'<port [^>]*><state state="([^"]+)"')


@dataclass(frozen=True)
class Timed:
    """One whole process: wall and processor seconds, its answers by word, how many are wrong."""

    wall_s: float
    cpu_s: float
    answers: Counter[str] = field(default_factory=Counter)
    wrong: int = 0


def command(argv: Sequence[str]) -> tuple[float, float, str]:
    """Run a program to its end: wall seconds, processor seconds, what it printed."""
    cpu_s, begun = children_cpu_s(), time.monotonic()
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return time.monotonic() - begun, children_cpu_s() - cpu_s, done.stdout


def agent(place: Field, orders: Sequence[ProbeOrder], expected: Answers) -> Timed:
    """Our agent, held against what each single flow must be."""
    wall_s, cpu_s, answers = run(place.within, orders)
    wrong = sum(answers.get(flow) != word for flow, word in expected.items())
    return Timed(wall_s, cpu_s, Counter(answers.values()), wrong + len(answers.keys() - expected))


def nmap(
    place: Field, options: Sequence[str], expected: Counter[str], *, pinned: bool = True
) -> Timed:
    """nmap, held against how many ports of each state there are; ``pinned``: on one processor."""
    within = place.within if pinned else place.source.enter
    argv = [*within, "nmap", *options, "-p", place.port_range, "-oX", "-", *place.addresses]
    wall_s, cpu_s, said = command(argv)
    found: Counter[str] = Counter(state for state in _PORT.findall(said))
    for state, count in _EXTRA.findall(said):
        found[state] += int(count)
    return Timed(wall_s, cpu_s, found, (expected - found).total())


def masscan(place: Field, expected_open: int) -> Timed:
    """masscan; it reports open ports only."""
    targets = ",".join(place.addresses)
    gateway = ["-e", "eth0", "--router-mac", place.target_mac]
    options = ["-p", place.port_range, *gateway, *MASSCAN, "-oL", "-"]
    argv = [*place.within, "masscan", targets, *options]
    wall_s, cpu_s, said = command(argv)
    found = len(set(re.findall(r"^open tcp (\d+) (\S+)", said, re.MULTILINE)))
    return Timed(wall_s, cpu_s, Counter(open=found), expected_open - found)


def floor(place: Field, program: str, window: int, source: str = "-") -> Timed:
    """The C program that only connects; ``source``: its sockets are bound to it."""
    ports = [str(FIRST_PORT), str(place.last_port)]
    argv = [*place.within, program, str(window), source, *ports, *place.addresses]
    wall_s, cpu_s, said = command(argv)
    words = said.split()
    closed = int(words[1]) if words else 0
    return Timed(wall_s, cpu_s, Counter(closed=closed), place.flows - closed)


def fping(place: Field, addresses: Sequence[str]) -> Timed:
    """fping, as fast as it goes."""
    cpu_s, begun = children_cpu_s(), time.monotonic()
    done = subprocess.run(
        [*place.within, "fping", *FPING, "-s"],
        input="\n".join(addresses), capture_output=True, text=True, check=False,
    )  # fmt: skip
    wall_s = time.monotonic() - begun
    alive = re.search(r"(\d+) alive", done.stderr)
    count = int(alive[1]) if alive else 0
    return Timed(wall_s, children_cpu_s() - cpu_s, Counter(echo=count), len(addresses) - count)
