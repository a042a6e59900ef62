"""A watch of a healthy estate whose router loses packets: ``python -m tests.lab.losses``.

The lab is that of ``tests.lab.outages``. The router drops a share of all packets each way, by
chance, and counts them. At the end it drops all that goes to one port: the watch that saw no
outage must see that one.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple
from urllib.request import urlopen

from netprobe.model.outage import History
from tests.lab.watching import DROP, WatchLab, watch_lab
from tests.patience import wait_until
from tests.ports import free_port

LOOKED = re.compile(r'^netprobe_looks_total\{result="([^"]+)"\} (\S+)$', re.MULTILINE)
PAUSE_S = 0.5


class Lossy(NamedTuple):
    """A watch under loss. ``looked``: flows that its rounds looked at, by verdict. ``history``:
    before the port was dropped."""

    minutes: float
    every_s: int
    packets: int
    lost: int
    looked: dict[str, int]
    history: History

    @property
    def is_as_promised(self) -> bool:
        """Whether packets were lost, flows were looked at, and no outage was invented."""
        return self.lost > 0 and self.looked["pass"] > 0 and not self.history.outages


def watch_losses(minutes: float, percent: int, every_s: int) -> Lossy:
    """Watch so long a router that loses so many of a hundred packets."""
    port = free_port()
    loss = (f"numgen random mod 100 < {percent} counter drop", "counter accept")
    with watch_lab(every_s, "--metrics", f"127.0.0.1:{port}") as lab:
        lab.plant(*loss)
        with lab.watching() as process:
            end = time.monotonic() + 60 * minutes
            while time.monotonic() < end:
                assert process.poll() is None, lab.log()
                time.sleep(PAUSE_S)
            lost, kept = _count_packets(lab)
            looked, history = _count_looked(port), lab.read()
            lab.plant(DROP, *loss)
            wait_until(lambda: lab.has_outage_of("client"), lab.log())
    return Lossy(minutes, every_s, lost + kept, lost, looked, history)


def _count_packets(lab: WatchLab) -> list[int]:
    """Count the packets of each of the router's rules."""
    listed = json.loads(lab["router"].run("nft", "-j", "list", "table", "ip", "f"))["nftables"]
    rules = [part for one in listed for part in one.get("rule", {}).get("expr", ())]
    return [part["counter"]["packets"] for part in rules if "counter" in part]


def _count_looked(port: int) -> dict[str, int]:
    """Count the flows that rounds looked at, as a scrape has them."""
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        return {name: int(float(value)) for name, value in LOOKED.findall(answer.read().decode())}


def describe_losses(seen: Lossy) -> Iterator[str]:
    """Give the lines of what came of it."""
    yield f"{seen.minutes:g} minutes, rounds every {seen.every_s} s"
    share = seen.lost / (seen.packets or 1)
    yield f"packets over the router: {seen.packets}, lost: {seen.lost} ({share:.2%})"
    yield "flows looked at: " + ", ".join(f"{count} {name}" for name, count in seen.looked.items())
    yield f"outages: {len(seen.history.outages)}, hosts blind: {len(seen.history.blind)}"
    yield from (f"not as promised: {one}" for one in seen.history.outages)
    yield from (f"blind: {one}" for one in seen.history.blind)


def main() -> int:
    """Print the lines; 1 where it is not as promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--percent", type=int, default=1, help="packets lost, of a hundred")
    parser.add_argument("--every", type=int, default=2, help="seconds")
    given = parser.parse_args()
    seen = watch_losses(given.minutes, given.percent, given.every)
    sys.stdout.write("\n".join(describe_losses(seen)) + "\n")
    return 0 if seen.is_as_promised else 1


if __name__ == "__main__":
    sys.exit(main())
