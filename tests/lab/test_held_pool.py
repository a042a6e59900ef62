"""A balancer in front of servers that run: ``--rehearse=balancer`` looks, and stops nothing.

The servers are Python's, with certificates of their own; HAProxy counts who got connections.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.lab.balancers import HOSTS, PORT, BalancedHosts, BalancedSixes, pools
from tests.lab.cli import Finished
from tests.lab.konnectivity.pki import authority, issue
from tests.lab.netlab import wait_for
from tests.lab.test_balancer import FOREIGN

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.needs("haproxy")]

TWO = [HOSTS["cp1"], HOSTS["cp2"]]
READYZ = {"health": {PORT: {"https": "/readyz"}}}


@pytest.fixture(
    params=[
        pytest.param(BalancedHosts, id="ipv4"),
        pytest.param(BalancedSixes, id="ipv6", marks=pytest.mark.full),
    ]
)
def lab(request: pytest.FixtureRequest) -> Iterator[BalancedHosts]:
    with request.param() as made:
        yield made


def make_certificate(lab: BalancedHosts, name: str) -> str:
    """A certificate and its key in one file."""
    issue(lab.folder, f"{name}.pem", authority(CN="lab"), [name], CN=name)
    return str(lab.folder / f"{name}.pem")


def start_servers(lab: BalancedHosts, *, alike: bool = False, ready: bool = True) -> None:
    """Serve on all back ends; what is ready answers /readyz with 200."""
    if ready:
        lab.write("readyz", "ok")
    one = make_certificate(lab, "api")
    for host in HOSTS:
        shown = one if alike else make_certificate(lab, host)
        address = lab.write_address(HOSTS[host])
        words = (sys.executable, "-c", FOREIGN, shown, str(PORT), address)
        quiet = subprocess.DEVNULL
        lab[host].spawn(*words, stderr=quiet, stdout=quiet, cwd=lab.folder)
        wait_for(lambda at=host: any(f":{PORT}" in one for one in lab[at].listening()), host)


def rehearse(lab: BalancedHosts) -> tuple[dict[str, dict[str, Any]], Finished]:
    """The results by the source. All servers listen on, the same as before."""
    before = {pid for host in HOSTS for pid in lab[host].pids()}
    done = lab.run("--rehearse=balancer", "--only", "api", "-o", "json", balancer=READYZ)
    assert before <= {pid for host in HOSTS for pid in lab[host].pids()}
    found = pools(done)
    assert set(found) == {"client", *HOSTS}
    return found, done


def reasons(found: dict[str, dict[str, Any]]) -> set[tuple[str, str]]:
    return {(one["verdict"], one["reason"]) for one in found.values()}


def test_a_pool_that_is_whole(lab: BalancedHosts) -> None:
    """Each source was shown the own certificate of each back end; what was not rehearsed is said,
    and why."""
    start_servers(lab)
    lab.start_haproxy()
    found, done = rehearse(lab)
    assert reasons(found) == {("pass", "balancer-pool")}
    assert min(lab.count_connections().values()) > 0
    for one in found.values():
        assert "own certificate of each back end: cp1, cp2, cp3" in one["because"]
        (warning,) = one["warnings"]
        assert "nothing was played or stopped: TCP port 6443 of cp1 is in use" in warning
        assert "Not rehearsed: health checks, removal and return" in warning
    assert done.status == 0


@pytest.mark.full
@pytest.mark.parametrize(("ready", "verdict"), [(True, "blocked"), (False, "inconclusive")])
def test_a_back_end_that_is_missing(lab: BalancedHosts, ready: bool, verdict: str) -> None:
    """One that is ready and gets nothing is missing; of another nobody knows."""
    start_servers(lab, ready=ready)
    lab.start_haproxy(servers=TWO)
    found, _ = rehearse(lab)
    assert reasons(found) == {(verdict, "balancer-lacks")}
    assert all("reached cp3 in" in one["because"] for one in found.values())
    assert set(lab.count_connections()) == {"s1", "s2"}


@pytest.mark.full
def test_one_that_ends_tls(lab: BalancedHosts) -> None:
    """No back end shows its certificate."""
    start_servers(lab)
    bind = f"ssl crt {make_certificate(lab, 'lb.lab')}"
    lab.start_haproxy(options="ssl verify none", bind=bind)
    found, _ = rehearse(lab)
    assert reasons(found) == {("blocked", "balancer-ends-tls")}
    assert all("showed the certificate of lb.lab" in one["because"] for one in found.values())
    assert min(lab.count_connections().values()) > 0


@pytest.mark.full
def test_certificates_that_are_alike(lab: BalancedHosts) -> None:
    """They tell no back end from another: the pool is not tested, and the reason is said."""
    start_servers(lab, alike=True)
    lab.start_haproxy()
    found, _ = rehearse(lab)
    assert reasons(found) == {("not-tested", "port-held")}
    assert all("cp1, cp2, cp3 show the same one" in one["because"] for one in found.values())
