"""An agent that claims answers which nobody gave: source - router-1 - router-2 - destination."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import lying_agent
from tests.lab.netlab import Lab
from tests.lab.test_explain import forward
from tests.lab.test_truth import THERE, Chain

pytestmark = pytest.mark.lab

OPEN, DROPPED = 6443, 8443
# One that a stranger may start: the tests' own may lie in somebody's home.
PYTHON = shutil.which("python3", path=os.defpath) or sys.executable


@pytest.fixture
def chain() -> Iterator[Chain]:
    """A chain of its own for every test; a router drops one port."""
    with Lab() as lab:
        built = Chain(lab)
        forward(built.router_2, f"th dport {DROPPED} counter drop")
        yield built


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("rights", [True, False], ids=["recorder", "listener-only"])
def test_a_pass_is_held_against_what_arrived(chain: Chain, protocol: str, rights: bool) -> None:
    """The destination's agent hears: what never came there was not answered there."""
    liar = (PYTHON, "-I", "-S", str(Path(lying_agent.__file__)), "ProbeOutcomes", "claims")
    found = chain.run({protocol: [OPEN, DROPPED]}, agent=True, rights=rights, near=liar)

    for address in THERE.values():
        open_, dropped = found[address, OPEN], found[address, DROPPED]
        assert (open_["verdict"], open_["proof"]) == ("pass", "nonce")
        assert (dropped["verdict"], dropped["reason"]) == ("inconclusive", "agents-disagree")
        assert dropped["where"] == ["destination", "source"]
        assert "source's agent says" in dropped["because"]
        assert "destination's agent that nothing came" in dropped["because"]
    assert "packets 0 " not in chain.router_2.run("nft", "list", "ruleset")


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_the_truth_is_no_contradiction(chain: Chain, protocol: str) -> None:
    """The same flows from an agent that tells what it saw."""
    found = chain.run({protocol: [OPEN, DROPPED]}, agent=True)

    for address in THERE.values():
        assert found[address, OPEN]["verdict"] == "pass"
        assert found[address, DROPPED]["verdict"] == "blocked"
