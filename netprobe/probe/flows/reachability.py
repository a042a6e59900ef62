"""Remembers which addresses answered which source in this run; silence is judged by that."""

from __future__ import annotations

from netprobe.model.evidence import CheckConclusion, Outcome
from netprobe.model.icmp import HOST_DOWN_MS
from netprobe.model.matrix import AnyProbe
from netprobe.probe.flows.chance import Chance
from netprobe.probe.flows.work import Task

# A refusal arrives within a round trip.
REFUSED_MS = 500
# When a kernel sends a SYN again that was not answered.
SECOND_SYN_MS = 1000.0
# A slower answer makes nobody wait longer: the source tells it, and a host can say anything.
MOST_ROUND_TRIP_MS = 4000.0
# Answers of a TCP connection that opened, whoever opened it.
OPENED = ("unasked", "silent", "closed", "reset", "other", "service")


class Answered:
    """Pairs of (source name, address) that answered; and addresses that are up, or down.

    ``flows``: how many the run asks. ``chance``: what it has shown of loss so far.
    """

    def __init__(self, flows: int = 1) -> None:
        self.chance = Chance(flows)
        self._answered: set[tuple[str, str]] = set()
        # Pairs of which a connection opened, and those of which something nearer opens them.
        self._opened: set[tuple[str, str]] = set()
        self._intercepted: set[tuple[str, str]] = set()
        self._up: set[str] = set()
        # Sources of which something let a new connection through.
        self._through: set[str] = set()
        # Sources to which a router said anything: what they ask of it is rationed.
        self._hear_routers: set[str] = set()
        # Hosts on an address's network that asked for it in vain; another source's packets may
        # lead to another network with that address.
        self._down: dict[tuple[str, str], str] = {}
        self._refused: set[tuple[str, str]] = set()
        self._slowest_ms: dict[tuple[str, str], float] = {}
        self._fastest_ms: dict[tuple[str, str], float] = {}
        self._given_up: dict[tuple[str, str], str] = {}
        self._given_up_to_any: dict[str, str] = {}
        # Sources that a server answered, by its address, protocol and service.
        self._served: dict[tuple[str, str, AnyProbe], dict[str, None]] = {}
        # Of pairs that were walked apart from their flows, whether anything answered.
        self._walked: dict[tuple[str, str], bool] = {}
        # Pairs of which a check found that the router gave up, however early its words came.
        self._no_refusals: set[tuple[str, str]] = set()

    def note_answer(self, source: str, address: str, outcome: Outcome) -> None:
        """Remember the pair if this outcome is an answer of the address."""
        pair = (source, address)
        if is_answer(outcome):
            (self._opened if outcome.answer in OPENED else self._answered).add(pair)
        # ICMP errors are rationed: a late one is about a later SYN than the first one.
        late = outcome.icmp is not None and (outcome.rtt_ms or 0.0) >= SECOND_SYN_MS
        if outcome.rtt_ms is not None and not late:
            rtt_ms = min(outcome.rtt_ms, MOST_ROUND_TRIP_MS)
            self._slowest_ms[pair] = max(self._slowest_ms.get(pair, 0.0), rtt_ms)
            self._fastest_ms[pair] = min(self._fastest_ms.get(pair, rtt_ms), rtt_ms)
        if outcome.icmp is not None and outcome.icmp.origin == "router":
            self._hear_routers.add(source)

    def note_intercepted(self, source: str, address: str) -> None:
        """Remember that something nearer opens connections of the pair: they are no answers."""
        self._intercepted.add((source, address))

    def note_served(self, task: Task) -> None:
        """Remember that the service which a task asks for answered its source."""
        if task.probe is not None:
            key = (task.address, task.protocol, task.probe)
            self._served.setdefault(key, {})[task.source.name] = None

    def list_served(self, task: Task) -> tuple[str, ...]:
        """List the sources that the service has answered which a task asks for."""
        if task.probe is None:
            return ()
        return tuple(self._served.get((task.address, task.protocol, task.probe), ()))

    def note_through(self, source: str) -> None:
        """Remember that a TCP connection of the source came through to somebody, or was reset."""
        self._through.add(source)

    def came_through(self, source: str) -> bool:
        """Tell whether any new connection of the source came through in this run."""
        return source in self._through

    def slowest_ms(self, source: str, address: str) -> float | None:
        """Give the slowest round trip of the pair in ms; None where nothing was answered."""
        return self._slowest_ms.get((source, address))

    def fastest_ms(self, source: str, address: str) -> float | None:
        """Give the fastest round trip of the pair in ms; None where nothing was answered."""
        return self._fastest_ms.get((source, address))

    def hears_routers(self, source: str) -> bool:
        """Tell whether a router has sent the source an ICMP error in this run."""
        return source in self._hear_routers

    def note(
        self, source: str, address: str, outcome: Outcome,
        conclusion: CheckConclusion | None = None, forged: bool | None = None,
    ) -> None:  # fmt: skip
        """Remember what a final outcome, and the conclusions of checks, say of the address."""
        pair = (source, address)
        if is_answer(outcome, forged):
            if conclusion is None:
                self._answered.add(pair)
                self._up.add(address)
        elif conclusion is not None and conclusion.name == "host-down":
            self._down.setdefault(pair, conclusion.said)
        elif conclusion is not None and conclusion.name == "refusing-host":
            self._refused.add(pair)
        elif is_host_unreachable(outcome) and not is_own_kernels_word(outcome):
            self._note_routers_word(pair, outcome, conclusion is not None)

    def _note_routers_word(self, pair: tuple[str, str], outcome: Outcome, concluded: bool) -> None:
        elapsed_ms = outcome.elapsed_ms or 0
        if outcome.icmp is not None and (concluded or elapsed_ms >= HOST_DOWN_MS):
            self._given_up.setdefault(pair, outcome.icmp.offender)
            self._given_up_to_any.setdefault(pair[1], outcome.icmp.offender)
            self._no_refusals |= {pair} if concluded else set()
        elif elapsed_ms < REFUSED_MS:
            self._refused.add(pair)

    def note_walk(self, source: str, address: str, answers: bool) -> None:
        """Remember whether a walk to an address heard any router, or the address."""
        self._walked[source, address] = answers

    def walked(self, source: str, address: str) -> bool | None:
        """Tell whether a walk to an address heard anything; None where there was none."""
        return self._walked.get((source, address))

    def has(self, source: str, address: str) -> bool:
        """Tell whether the address ever answered the source."""
        pair = (source, address)
        is_opened = pair in self._opened and pair not in self._intercepted
        return pair in self._answered or is_opened

    def refuses(self, source: str, address: str) -> bool:
        """Whether somebody says "host unreachable" at once: a firewall, and no dead neighbour. Its
        later answers may come late, because it may say so about once a second only. Who asked its
        own network in vain knows more than the time of a router's words tells."""
        pair = (source, address)
        refused = pair in self._refused and pair not in self._no_refusals
        return refused and self.asked_in_vain(*pair) is None

    def is_up(self, address: str) -> bool:
        """Whether the address answered anybody."""
        return address in self._up

    def given_up_by(self, source: str, address: str, *, or_any: bool = False) -> str | None:
        """Give the router whose next hop to the address did not answer, as it told the source, or
        (``or_any``) any source."""
        told = self._given_up.get((source, address))
        return told or (self._given_up_to_any.get(address) if or_any else None)

    def asked_in_vain(self, source: str, address: str) -> str | None:
        """Give the host that got no answer to its ARP requests on the network where the source's
        packets to the address lead; None where none is known, or the address answered somebody."""
        return None if self.is_up(address) else self._down.get((source, address))


def is_answer(outcome: Outcome, forged: bool | None = None) -> bool:
    """Tell whether the address spoke: an answer, its ICMP error, a reset known to be unforged.

    "Host unreachable" in its name may be a router's word about the target of a translation.
    """
    if outcome.answer is not None:
        return True
    if outcome.icmp is not None:
        return outcome.icmp.origin == "destination" and not is_host_unreachable(outcome)
    return outcome.failure == "refused" and forged is False


def is_own_kernels_word(outcome: Outcome) -> bool:
    """Whether the source's own kernel said "host unreachable"."""
    own = outcome.icmp is None or outcome.icmp.origin == "source"
    return own and is_host_unreachable(outcome)


def is_host_unreachable(outcome: Outcome) -> bool:
    """Whether somebody said that nobody answers for the address, or refused it in these words."""
    if outcome.icmp is not None:
        return outcome.icmp.word == "host-unreach"
    return outcome.failure == "host-unreachable"
