"""TCP: closed, open and rejected ports, drops, loss, starvation, and the C floor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from statistics import median

from bench import tools
from bench.agent import Answers, port_order
from bench.field import FIRST_PORT, SOURCE, Field
from bench.table import Row, against, seconds
from bench.tools import Timed
from netprobe.agent.wire.orders import ProbeOrder

FLOOR_WINDOW = 128
BUSY_LOOPS = 4
LOSS_PERCENT = 5
# What the second look costs, and the learned first one.
DROP_COST_S = 9.0
RUN_OF_DROPS = 500


def scans(flows: int, repeats: int) -> list[Row]:
    """Closed, open and rejected ports against nmap, closed ones against the floor."""
    rows = []
    with Field(flows) as place:
        rows += _closed(place, repeats)
        place.rules(f"tcp dport {place.port_range} reject with icmp admin-prohibited")
        rows.append(_pair(place, "rejected", "filtered", 1.3, repeats))
        place.rules()
        place.open_doors()
        rows.append(_pair(place, "open", "open", 1.15, repeats))
        rows.append(_masscan(place))
    return rows


def drops(flows: int, repeats: int) -> list[Row]:
    """Nine of ten ports open, one dropped: scattered, in runs, with loss, under starvation."""
    with Field(flows) as place:
        place.open_doors()
        none = [_ours(place, lambda port: "open") for _ in range(repeats)]
        rows = [Row("open, none dropped", seconds(none), "", "", "", None, _wrong(none))]
        base_s = median(run.wall_s for run in none)
        for name, dropped in (("scattered", _scattered), ("in runs", _in_runs)):
            _drop(place, dropped)
            some = [_ours(place, _word(dropped)) for _ in range(repeats)]
            more_s = median(run.wall_s for run in some) - base_s
            rows.append(
                Row(f"10 % dropped, {name}", seconds(some), "none dropped", f"+{more_s:.1f} s",
                    f"<= {DROP_COST_S:g} s more", more_s <= DROP_COST_S, _wrong(some))
            )  # fmt: skip
        rows.append(_lossy(place, repeats))
        rows.append(_starved(place, repeats))
    return rows


def _closed(place: Field, repeats: int) -> list[Row]:
    program = place.compile("floor")
    ours, nmaps, floors, bound = [], [], [], []
    for _ in range(repeats):
        ours.append(_ours(place, lambda port: "closed"))
        nmaps.append(tools.nmap(place, tools.NMAP_TCP, Counter(closed=place.flows)))
        floors.append(tools.floor(place, program, FLOOR_WINDOW))
        bound.append(tools.floor(place, program, FLOOR_WINDOW, SOURCE))
    work = f"TCP closed, {place.flows:,} flows"
    return [
        against(work, ours, "nmap -sT", nmaps, 1.3),
        against(work, ours, "C floor", floors, 0.75),
        against(work, ours, "C floor, bound", bound, None),
    ]


def _pair(place: Field, word: str, nmaps_word: str, goal: float, repeats: int) -> Row:
    ours, nmaps = [], []
    for _ in range(repeats):
        ours.append(_ours(place, lambda port: word))
        nmaps.append(tools.nmap(place, tools.NMAP_TCP, Counter({nmaps_word: place.flows})))
    return against(f"TCP {word}, {place.flows:,} flows", ours, "nmap -sT", nmaps, goal)


def _masscan(place: Field) -> Row:
    ours = [_ours(place, lambda port: "open")]
    return against(
        f"TCP open, {place.flows:,} flows (raw SYNs)", ours, "masscan",
        [tools.masscan(place, place.flows)], None,
    )  # fmt: skip


def _lossy(place: Field, repeats: int) -> Row:
    _drop(place, _scattered)
    place.lose(LOSS_PERCENT)
    runs = [_ours(place, _word(_scattered)) for _ in range(repeats)]
    place.heal()
    wrong = max(run.wrong for run in runs)
    return Row(
        f"10 % dropped, {LOSS_PERCENT} % of packets lost each way", seconds(runs), "",
        f"{wrong} wrong", "0 wrong", wrong == 0, _wrong(runs),
    )  # fmt: skip


def _starved(place: Field, repeats: int) -> Row:
    _drop(place, _scattered)
    place.starve(BUSY_LOOPS)
    runs = [_ours(place, _word(_scattered)) for _ in range(repeats)]
    place.calm()
    wrong = max(run.wrong for run in runs)
    return Row(
        f"10 % dropped, {BUSY_LOOPS} busy loops on the same core", seconds(runs), "",
        f"{wrong} wrong", "0 wrong", wrong == 0, _wrong(runs),
    )  # fmt: skip


def _ours(place: Field, word: Callable[[int], str]) -> Timed:
    ports = range(FIRST_PORT, place.last_port + 1)
    expected: Answers = {
        (address, port): word(port) for address in place.addresses for port in ports
    }
    return tools.agent(place, _orders(place), expected)


def _orders(place: Field) -> list[ProbeOrder]:
    return [
        port_order(number, "tcp", address, (FIRST_PORT, place.last_port), "connect")
        for number, address in enumerate(place.addresses, 1)
    ]


def _scattered(port: int) -> bool:
    return port % 10 == 0


def _in_runs(port: int) -> bool:
    return (port // RUN_OF_DROPS) % 10 == 0


def _word(dropped: Callable[[int], bool]) -> Callable[[int], str]:
    return lambda port: "silent" if dropped(port) else "open"


def _drop(place: Field, dropped: Callable[[int], bool]) -> None:
    ports = range(FIRST_PORT, place.last_port + 1)
    listed = ", ".join(str(port) for port in ports if dropped(port))
    place.rules(f"tcp dport {{ {listed} }} drop")


def _wrong(runs: list[Timed]) -> str:
    return f"{max(run.wrong for run in runs):,}"
