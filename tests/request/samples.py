"""One request with everything that a syntax has to write, and with texts that want to break out."""

from __future__ import annotations

from msgspec.structs import replace

from netprobe.model.firewall import FirewallRequest
from netprobe.model.result import HostReport, Result
from netprobe.request.rules import RequestWishes
from tests.report.samples import BLOCKED, INFO
from tests.request.flows import ask

HOSTILE = (
    'etcd\'s "peers"; $(reboot) `reboot` ${var} %{x} <b>|@all|</b> \\ # ! ? \n'
    "insert rule ip x y accept\r\n' -- =cmd()"
)
HOSTS = (
    HostReport(
        name="master-0",
        state="agent",
        roles=("master", "node"),
        addresses=("10.0.0.10", "fd00::10"),
    ),
    HostReport(
        name="master-1",
        state="agent",
        roles=("master", "node"),
        addresses=("10.0.0.11", "fd00::11"),
    ),
    HostReport(name="worker-0", state="agent", roles=("node",), addresses=("10.0.1.20",)),
    HostReport(
        name="worker-1", state="agent", roles=("node",), addresses=("10.0.1.21", "10.9.1.21")
    ),
)
RUN = replace(INFO, hosts=HOSTS)
WISHES = RequestWishes(
    include=frozenset({"exposed"}),
    stateless=True,
    until="2027-01-31",
    ticket={"workflow": "Access Request", "Cost Centre": "=4711"},
)


def flow(source: str, destination: str, address: str, service: str, **changes: object) -> Result:
    """Give one blocked flow; a service is ``tcp/6443-6444``, ``icmp`` or ``ipproto/112``."""
    name, _, ports = service.partition("/")
    first, _, last = ports.partition("-")
    ported = name in ("tcp", "udp")
    given: dict[str, object] = {
        "source": source,
        "destination": destination,
        "address": address,
        "protocol": name if ported else service,
        "port": int(first) if ported else None,
        "end_port": int(last or first) if ported else None,
        **changes,
    }
    return replace(BLOCKED, **given)  # the keys are those of a result


def results(text: str = HOSTILE) -> tuple[Result, ...]:
    """Give failures of every kind: refused on the way, dropped at the end, at the source, open."""
    api = {"requirement": "api", "purpose": text, "row": text, "where": ("path",)}
    refused = {"rejected_by": "10.0.0.1", "reason": "admin-prohibited", "because": text}
    path = {"where": ("path",), "requirement": "overlay", "purpose": "VXLAN"}
    closed = {"expect": "denied", "verdict": "exposed", "state": "open", "reason": "syn-ack"}
    m0, m1 = "10.0.0.10", "10.0.0.11"
    return (
        flow("worker-0", "master-0", m0, "tcp/6443", **api, **refused),
        flow("worker-0", "master-1", m1, "tcp/6443", **api, **refused),
        flow("worker-1", "master-0", m0, "tcp/6443", **api, **refused),
        flow("worker-1", "master-1", m1, "tcp/6443", **api, **refused),
        flow("worker-0", "master-0", m0, "udp/8472", **path),
        flow("worker-0", "master-0", m0, "udp/7000-7009", **path),
        flow("master-0", "master-1", "fd00::11", "icmp", **path),
        flow("worker-0", "master-0", m0, "icmp", **path),
        flow("master-0", "master-1", m1, "ipproto/112", **path, last_hop="10.0.0.1"),
        flow("master-0", "master-1", m1, "tcp/2379-2380", where=("destination",)),
        flow("worker-0", "master-1", m1, "tcp/22", where=("destination", "host", "source")),
        flow("master-1", "worker-0", "10.0.1.20", "tcp/10250", where=("source",),
             reason="local-firewall"),
        flow("worker-0", "master-0", m0, "tcp/9100", where=("destination",), **closed),
        flow("worker-0", "gone", "10.0.3.3", "tcp/1", state="unreachable", reason="host-down",
             where=("host",)),
    )  # fmt: skip


def sample(text: str = HOSTILE, wishes: RequestWishes = WISHES) -> FirewallRequest:
    """Give the request for all of it."""
    numbered = (replace(one, order=(place, 0, 0)) for place, one in enumerate(results(text)))
    return ask(tuple(numbered), wishes, RUN)
