"""What a run knows of hosts and requirements, looked up by results."""

from __future__ import annotations

from msgspec.structs import replace

from netprobe.model.run import RunIndex, info_before
from tests.report.plans import PLAN
from tests.report.samples import INFO, PASSED, REQUIREMENTS


def test_roles_of_a_result() -> None:
    """A result's roles are those that make the requirement concern its hosts, own ones first."""
    both = replace(REQUIREMENTS[0], from_=("node", "master"))
    index = RunIndex(replace(INFO, requirements=(both,)))

    assert index.requirement(PASSED) == both
    assert (index.source_role(PASSED), index.destination_role(PASSED)) == ("master", "master")
    assert index.roles("master-0") == ("master", "node")
    assert (index.zone("master-0"), index.zone("master-1")) == ("a", None)


def test_an_older_file_tells_no_roles() -> None:
    """Then a host's own name stands for its role, and nothing is made up."""
    hosts = tuple(replace(host, roles=(), zone=None) for host in INFO.hosts)
    index = RunIndex(replace(INFO, requirements=(), hosts=hosts))

    assert index.requirement(PASSED) is None
    assert (index.source_role(PASSED), index.destination_role(PASSED)) == ("master-0", "master-1")
    assert RunIndex(replace(INFO, hosts=())).roles("master-0") == ()
    assert RunIndex(replace(INFO, hosts=())).zone("master-0") is None


def test_before_the_first_agent() -> None:
    """Every host of the plan is there, with what the inventory says and nothing of an agent."""
    info = info_before(replace(PLAN, roles={"time": ("ntp",)}), "now")

    assert [host.name for host in info.hosts] == ["master-0", "master-1", "master-2", "time"]
    assert {host.state for host in info.hosts} == {"unknown"}
    assert (info.hosts[-1].roles, info.hosts[0].addresses) == (("ntp",), ("10.0.0.10",))
    assert (info.planned_flows, info.complete) == (PLAN.flow_count(), False)
