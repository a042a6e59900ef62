"""Hosts at which ssh fails for a cause of the network: what the run says of it.

The estate of ``causes``: netprobe runs on c1, and reaches b2 by ssh.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.causes import ADDRESSES, Estate, hold_twice
from tests.lab.cli import Finished
from tests.lab.services import client_config, start_sshd

pytestmark = [
    pytest.mark.lab, pytest.mark.slow, pytest.mark.full,
    pytest.mark.needs("other users", "sshd", "dnsmasq"),
]  # fmt: skip

B2 = ADDRESSES["b2"]


@pytest.fixture
def lab() -> Iterator[Estate]:
    """The estate, with sshd on b2."""
    with Estate() as lab:
        start_sshd(lab, lab["b2"])
        client_config(lab, lab["b2"], [])
        yield lab


def run(lab: Estate, *words: str) -> Finished:
    """Probe from c1, and keep the text beside."""
    text = ("-o", f"text={lab.folder}/report.text")
    done = lab.run(*text, *words, within=lab["c1"].enter, ssh=["b2"])
    assert {one["name"] for one in done.document["hosts"] if one["state"] != "agent"} <= {"b2"}
    return done


def untested(done: Finished) -> set[tuple[str, str]]:
    """Source and reason of the flows that were not tested."""
    return {
        (one["source"], one["reason"]) for one in done.results if one["verdict"] == "not-tested"
    }


def words_of(done: Finished) -> str:
    """What the report says of b2."""
    (report,) = (one for one in done.document["hosts"] if one["name"] == "b2")
    said: str = report["words"]
    return said


def test_a_healthy_host_is_reached_by_ssh(lab: Estate) -> None:
    """The other tests would say nothing otherwise."""
    done = run(lab, "--limit", "b2")

    assert (done.status, done.document["findings"], untested(done)) == (0, [], set())


@pytest.mark.parametrize(
    ("ends", "direction"),
    [("ip saddr 10.96.3.0/24 ip daddr {}", "to it"), ("ip daddr 10.96.3.0/24 ip saddr {}", "from")],
)
def test_ssh_that_dies_in_a_hole_says_so(lab: Estate, ends: str, direction: str) -> None:
    """Small packets get through: the flows that could not be tested have that cause, ping shows it,
    and the report names the finding of the neighbours that measured the hole."""
    lab.filter("r2", "forward", f"{ends.format(B2)} meta length > 1400 drop")

    done = run(lab, "--limit", "b2")

    assert untested(done) == {("b2", "mtu-black-hole")}
    assert "with small packets the login works" in words_of(done)
    assert f"none of 4,000 bytes {direction}" in words_of(done)
    assert f"`ping -M do -s 1472 {B2}` gets no answer" in words_of(done)
    (finding,) = done.document["findings"]
    assert finding["title"].startswith(
        "packets above 1400 bytes vanish between (c1, c2, c3) and b2"
    )
    page = (lab.folder / "report.text").read_text()
    assert "Others measured what stops ssh, too: large packets vanish there (finding 1)." in page
    assert f"`ping -M do -s 1372 {B2}` on c1 gets an answer, and with -s 1373 it gets none." in page
    lost = lab["c1"].run("ping", "-M", "do", "-c1", "-W1", "-s", "1373", B2, check=False)
    assert "0 received" in lost
    assert "1 received" in lab["c1"].run("ping", "-M", "do", "-c1", "-W5", "-s", "1372", B2)


def test_ssh_that_meets_another_machine_says_so(lab: Estate) -> None:
    """Neither its refusals nor its echoes are passes, and nobody is asked to start sshd."""
    hold_twice(lab, "b2", "b1")

    done = run(lab)

    assert untested(done) == {("b2", "other-machine")}
    assert "Connection refused" in words_of(done)
    assert f"answer ARP requests for {B2}: two machines have the address" in words_of(done)
    assert "is sshd running" not in words_of(done)
    (finding,) = done.document["findings"]
    assert finding["title"].startswith(f"another machine answers for b2 ({B2}) (")
    to_b2: list[dict[str, Any]] = [one for one in done.results if one["destination"] == "b2"]
    assert {(one["verdict"], one["reason"]) for one in to_b2} == {("blocked", "other-machine")}
    assert done.document["summary"]["refusals"] == 0
