"""What a rehearsal knows of its row: each port, address and way by itself."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from netprobe.judge.verdict import Rules, judge
from netprobe.model.evidence import Evidence, Listener, Outcome, Witness
from netprobe.model.inventory import Inventory
from netprobe.model.plan import Flow, Plan
from netprobe.model.ports import Ports
from netprobe.plan.rehearsals import with_rehearsals
from netprobe.probe.rehearsals.rehearsal import RowArrivals
from tests.probe.builders import SOURCE, TARGET, make_want

ARRIVES, STOPPED, FREE = 8469, 8472, 4789
PORTS: Ports = ((FREE, FREE), (ARRIVES, ARRIVES), (STOPPED, STOPPED))
THERE, BACK = (
    make_want("udp", PORTS, source=start, target=end, probe="vxlan").flow
    for start, end in ((SOURCE, TARGET), (TARGET, SOURCE))
)
ANSWERED = Outcome("answer", None, answer="nonce")
SILENT = Outcome("answer", "no-answer")
TO, FROM = (flow.address.text for flow in (THERE, BACK))


def see(flow: Flow, port: int, outcome: Outcome) -> Evidence:
    """What the probes of one port of the row saw."""
    ours, unseen = Listener("ours"), None if outcome.answer else Witness()
    ports = ((port, port),)
    return Evidence(flow, flow.address.text, ports, outcome=outcome, listener=ours, witness=unseen)


def expecting(*words: str) -> tuple[RowArrivals, Flow]:
    """What is known of a plan with these rehearsals, and the flow of a tunnel, or of the row."""
    plan = with_rehearsals(Plan((), (THERE.block,)), words, (), Inventory((SOURCE, TARGET)))
    arrivals = RowArrivals()
    arrivals.expect(plan)
    return arrivals, replace(THERE, block=plan.blocks[-1])


def test_one_port_of_a_row_says_nothing_of_another() -> None:
    """A stopped port is stopped, there and back; one that passes, or was not asked, is not."""
    for seen in (SILENT, ANSWERED), (ANSWERED, SILENT):
        arrivals, tunnel = expecting("overlay")
        by_port = dict(zip((STOPPED, ARRIVES), seen, strict=True))
        arrivals.note(see(THERE, port, outcome) for port, outcome in by_port.items())
        arrivals.note(see(BACK, port, outcome) for port, outcome in by_port.items())
        for port, outcome in by_port.items():
            for ask in (arrivals.of_row, arrivals.of_way_back):
                assert ask(tunnel, TO, port) is (outcome is ANSWERED), (port, ask)
        assert arrivals.of_row(tunnel, TO, FREE) is arrivals.of_way_back(tunnel, TO, FREE) is None


def test_one_address_says_nothing_of_another() -> None:
    """The row's packets to a host's second address are no word on the first; back, whatever the
    addresses of the source do not agree on is not known."""
    arrivals, tunnel = expecting("overlay")
    arrivals.note([see(THERE, STOPPED, SILENT)])
    assert arrivals.of_row(tunnel, "10.0.0.9", STOPPED) is None
    arrivals.note([see(BACK, STOPPED, SILENT)])
    assert arrivals.of_way_back(tunnel, TO, STOPPED) is False
    arrivals.note([replace(see(BACK, STOPPED, ANSWERED), address="10.0.0.9")])
    assert arrivals.of_way_back(tunnel, TO, STOPPED) is None


def test_a_row_that_is_not_rehearsed_costs_nothing() -> None:
    """Of a million flows nothing is kept for nobody."""
    arrivals, _ = expecting()
    arrivals.note([see(THERE, STOPPED, SILENT)])
    assert not arrivals.known


def test_what_an_earlier_run_found_holds() -> None:
    """A resumed run knows of the rows that it keeps what the earlier one knew; a process that held
    the port says nothing of the way."""
    arrivals, tunnel = expecting("overlay")
    judged = partial(judge, order=(0, 0, 0), rules=Rules())
    blocked, passed = (
        judged(see(THERE, port, outcome))[0]
        for port, outcome in ((STOPPED, SILENT), (ARRIVES, ANSWERED))
    )
    assert (blocked.verdict, passed.verdict) == ("blocked", "pass")
    taken = replace(blocked, reason="port-taken", port=FREE, end_port=FREE)
    for one in (blocked, passed, taken):
        arrivals.note_kept(one)
    found = {port: arrivals.of_row(tunnel, TO, port) for port in (STOPPED, ARRIVES, FREE)}
    assert found == {STOPPED: False, ARRIVES: True, FREE: None}
