"""The words of docs/performance.md around the table."""

from __future__ import annotations

from collections.abc import Sequence

from bench import tools
from bench.table import Row, markdown

_HEAD = """\
# Performance

Printed by `make bench`{size}; do not edit. Every row was measured side by side: the programs took
turns on the same targets, in network namespaces of one machine, and a cell shows medians. A ratio is the
median over pairs of neighbouring runs: above 1 netprobe was faster. Processor seconds stand beside wall seconds
because other work on the machine disturbs them less; a goal counts as met by the better of both ratios.

Machine: {machine}

"""

_BODY = """

## What is measured
* **TCP and UDP rows**: the whole process on one core (`taskset`), from its start to its exit. netprobe's
  is the product's own shell script, Python's start, the bundle over stdin, the orders, every outcome over the
  wire, and the end. nmap: `{nmap}`; UDP `{nmap_udp}`. masscan: `{masscan}`: raw SYNs, so it needs root and
  tells open ports only.
* **wrong** counts flows whose answer was not the one that the target gave, in the runs that were timed.
* **C floor**: `bench/floor.c`, non-blocking connects over one epoll descriptor with reused sockets. It is no
  scanner: it keeps no deadlines, reads no error queue, tells nobody what it found.
* **open**: something accepts on every port (`bench/doors.c`) and the prober closes politely by a FIN; nmap resets.
* **dropped**: a firewall at the destination drops one port in ten; netprobe asks silence twice (a learned first look,
  then 4 s). **lost**: besides that, packets are lost at random in both directions.
* **ICMP echo**: from the first order to the last answer, fping (`{fping}`) less its own run for a single host.
* **`run`**: the real command line, agents by `ip netns exec`, listeners, nonces, witnesses, path MTU and JSON, all
  agents and the coordinator on this machine's processors.
* **stream**: evidence through judge, collector and spool in a process of its own.

## Where the time goes
A closed port costs two system calls, both `connect()`: one sends the SYN, one fetches the result and makes the
socket new. They take about two thirds of a scan's processor time (the C floor is little else). A call from Python costs 0.6 µs
more than one from C, twice a flow; what is left is the start (about 0.08 s) and the bookkeeping, which goes through
`map` and `zip` in chunks of 128, never flow by flow. An open port costs twice as much, in the kernel: it makes a connection at both ends, and
a FIN is dearer than a reset. A rejected one needs two more system calls, for the error queue that tells who rejected it.
fping sends one packet and keeps one timestamp; netprobe gives every host an order with an id, a keyed nonce, deadlines and an
outcome frame of its own (about 0.1 ms), which is what a probe of a host is made of. It is not made for sweeps.

## Several cores
An agent is one process, whatever `--jobs` says. Listening, probing and reporting of one host share one loop, and a host of a
cluster has a few thousand flows to do: one or two seconds of one processor (the `run` row: all agents together). Hosts
work beside each other, so a run uses as many processors as there are hosts.

## What this does not cover
* Real networks: a namespace's round trip is some 20 µs. Over a wide-area path waiting for answers decides, and so do the
  deadlines (design 6.6), not the processor.
* Starts over ssh, which take about a second each and go 8 at a time per first hop.
* Hosts slower than this one, and Pythons other than the system's own (see the vermin floor, 3.6).
* IPv6, which takes the same path through the engine; firewalls with connection tracking at the source.
* UDP towards real ICMP limits: there the answering kernel decides (6 at once, then one a second).
* Fragmented results: where every single port of a large range differs from its neighbour, sources' outcomes of one destination are
  held in memory until that destination is done.
"""


def text(rows: Sequence[Row], machine: str, *, full: bool) -> str:
    """The whole page."""
    body = _BODY.format(
        nmap=" ".join(tools.NMAP_TCP),
        nmap_udp=" ".join(tools.NMAP_UDP),
        masscan=" ".join(tools.MASSCAN),
        fping=" ".join(tools.FPING),
    )
    head = _HEAD.format(size=" (`--full`)" if full else "", machine=machine)
    return head + markdown(rows) + body
