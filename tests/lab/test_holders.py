"""All machines that have one address answer an agent on their network, by ARP and by ND."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from netprobe.agent.core.agent import AgentCore
from netprobe.agent.core.loop import Loop
from netprobe.agent.segment.asking import ask_addresses
from netprobe.agent.wire.failures import NOT_SUPPORTED
from netprobe.agent.wire.segment_messages import SegmentAnswers, SegmentAskOrder
from tests.lab.netlab import Lab, Namespace

pytestmark = pytest.mark.lab

ASKER = {"10.97.1.1": "10.97.1.{}", "fd97:1::1": "fd97:1::{}"}


class Asking(AgentCore):
    """An agent that sends its answer to the test."""

    def send(self, message: tuple[object, ...]) -> None:
        """Keep the answer, and end."""
        assert isinstance(message, SegmentAnswers)
        self.answer = message
        self.loop.stop()


def ask(host: Namespace, order: SegmentAskOrder) -> SegmentAnswers:
    """Let an agent on this host ask."""

    def run() -> SegmentAnswers:
        agent = Asking(Loop())
        agent.loop.call_later(0, lambda: ask_addresses(agent, order))
        agent.loop.run()
        return agent.answer

    answer = host.inside(run)
    assert isinstance(answer, SegmentAnswers)
    return answer


def list_links(answer: SegmentAnswers) -> set[str]:
    """The link-layer addresses that answered."""
    return {one.link for one in answer.answers}


def link_of(host: Namespace) -> str:
    """Its device's address, as ``ip`` prints it."""
    (shown,) = json.loads(host.run("ip", "-j", "link", "show", "eth0"))
    return str(shown["address"])


@pytest.mark.needs("tunnel devices")
def test_every_holder_of_an_address_answers() -> None:
    """One machine has .2, two have .3, nobody has .4; a wrong device is a failure, and one
    that is no Ethernet is named so."""
    with Lab() as lab:
        switch = lab.namespace("switch")
        switch.ip("link add br0 type bridge mcast_snooping 0", "link set br0 up")
        for name, last in {"a": 1, "b": 2, "c": 3, "d": 3}.items():
            host = lab.namespace(name)
            lab.cable(host, "eth0", switch, f"p-{name}")
            switch.ip(f"link set p-{name} master br0")
            host.ip(*(f"address add {form.format(last)}/{'64 nodad' if ':' in form else 24} "
                      "dev eth0" for form in ASKER.values()))  # fmt: skip
        lab["a"].ip("tuntap add tun0 mode tun", "link set tun0 up")
        lab.wait_until_ready()
        orders = {
            (form.format(last), device): SegmentAskOrder(
                7, device, [form.format(last)] * 3, 50, source
            )
            for source, form in ASKER.items()
            for last, device in ((2, "eth0"), (3, "eth0"), (4, "eth0"), (2, "eth9"), (2, "tun0"))
        }
        with ThreadPoolExecutor(len(orders)) as threads:
            answers = dict(
                zip(orders, threads.map(lambda one: ask(lab["a"], one), orders.values()),
                    strict=True)
            )  # fmt: skip
        two, both = {link_of(lab["b"])}, {link_of(lab["c"]), link_of(lab["d"])}

    for form in ASKER.values():
        assert list_links(answers[form.format(2), "eth0"]) == two
        assert list_links(answers[form.format(3), "eth0"]) == both
        assert answers[form.format(4), "eth0"] == SegmentAnswers(7, [], None)
        assert answers[form.format(2), "eth9"].failure is not None
        assert answers[form.format(2), "tun0"].failure == NOT_SUPPORTED
