"""What the reasons of rehearsals mean."""

from collections.abc import Mapping
from typing import Final

from netprobe.model.reason import Reason

SWITCH_OFF = (
    "{commands} (netprobe has not done it); or have the driver or the hypervisor mended, or let "
    "the CNI switch off transmit checksums on its tunnel device."
)

_REFLECT = (
    "Let back ends reach themselves through {destination} ({address}): translate the source "
    "address of connections that come from a back end, or let the balancer proxy them."
)

_LOSES = (
    "Look what becomes of these connections in the log of {destination} ({address}): a server of "
    "{ports} that is not there and has no health check, a limit of connections or of sources, or a "
    "back end whose firewall stops {source}."
)


def _make_balancer(title: str, remedy: str) -> Reason:
    """Give the reason of a fault of a balancer: one finding for each of its addresses."""
    return Reason(
        kind="balancer",
        title=title,
        rule_causes=False,
        rule_mends=False,
        shares="address",
        advice={("service",): remedy},
        owner="network",
    )


OF_REHEARSALS: Final[Mapping[str, Reason]] = {
    "tunnel-transfer": Reason(),
    "row-stopped": Reason(waits=True),
    "overlay-offload": Reason(
        source_is="its network card",
        destination_is="its network card",
        kind="overlay",
        title="network cards{driver} spoil TCP inside of VXLAN tunnels {between}",
        rule_causes=False,
        rule_mends=False,
        shares="driver",
        advice={
            ("source",): SWITCH_OFF,
            ("destination",): SWITCH_OFF,
        },
        owner="hosts",
    ),
    "overlay-broken": Reason(
        kind="overlay",
        title="VXLAN tunnels do not work {between}, although {what} is open",
        rule_causes=False,
        rule_mends=False,
        shares="sentence",
        advice={
            ("path",): "Look at what stands on the way {between}, hypervisors included: filters of "
            "tunnels (by network id, size or content), MTUs of links, and what spoils checksums."
        },
    ),
    "address-free": Reason(),
    "one-machine": Reason(),
    "segment-silent": Reason(rule_causes=False, rule_mends=False),
    "address-in-use": Reason(
        kind="machine",
        title="somebody has the address of {hosts} already: {address} is not free",
        host_is="its address is another machine's",
        rule_causes=False,
        rule_mends=False,
        shares="address",
        advice={
            ("host",): "Take {address} off whatever has it (its link-layer address stands above; "
            "the tables of the switches say at which port), or choose another one for "
            "{destination}."
        },
        owner="hosts",
    ),
    "vrid-taken": Reason(
        kind="machine",
        title="another router on the segment has the id that {hosts} will have",
        host_is="its id is another router's",
        rule_causes=False,
        rule_mends=False,
        shares="address",
        advice={
            ("host",): "Choose another id for {destination} (virtual_router_id of keepalived, and "
            "`vrid:` of the inventory), or another one for the router that has it."
        },
        owner="hosts",
    ),
    "dhcp-foreign": Reason(
        kind="service",
        title="a DHCP server answers on the network of {hosts}, which should have none",
        rule_causes=False,
        rule_mends=False,
        shares="address",
        advice={
            ("service",): "Switch off the server (its address and link-layer address stand above; "
            "the tables of the switches say at which port), or keep it off this network. If it is "
            "wanted there, take `dhcp: none` out of the inventory."
        },
        owner="network",
    ),
    "multicast-arrives": Reason(),
    "multicast-filtered": Reason(
        kind="multicast",
        title="VRRP's multicast does not pass {between}",
        rule_causes=False,
        rule_mends=False,
        shares="reason",
        advice={
            ("path",): "Let switches and hypervisors {between} pass frames to 01:00:5e:00:00:12 "
            "(IPv6: 33:33:00:00:00:12): look at IGMP and MLD snooping, storm control and filters "
            "of virtual switches; or have the routers speak to each other alone (unicast_peer of "
            "keepalived)."
        },
        owner="network",
    ),
    "way-quality": Reason(),
    "slow": Reason(
        kind="quality",
        title="the way {between} is worse than {what} needs",
        rule_causes=False,
        rule_mends=False,
        shares="reason",
        advice={
            ("path",): "Look at what delays or loses packets on the way {between}: distance, links "
            "that are full or spoil packets, shapers, busy hypervisors."
        },
        owner="network",
    ),
    "quality-undecided": Reason(rule_causes=False, rule_mends=False),
    "no-samples": Reason(),
    "balancer-pool": Reason(),
    "balancer-foreign": _make_balancer(
        "{ends} answers {what} with something that is no back end of it",
        "Take from the pool of {destination} ({address}) what is none of its back ends, or have "
        "it hand connections on instead of answering itself.",
    ),
    "balancer-ends-tls": _make_balancer(
        "{ends} ends TLS on {what} itself",
        "Have {destination} ({address}) pass TCP through unchanged on {ports} (layer 4): clients "
        "and servers of the platform check each other's certificates.",
    ),
    "balancer-proxy-header": _make_balancer(
        "{ends} sends a header of the PROXY protocol on {what}",
        "Switch off the PROXY protocol towards the back ends of {destination} ({address}) on "
        "{ports}.",
    ),
    "balancer-lacks": _make_balancer(
        "{ends} hands {what} on to less than all of its back ends",
        "Compare the pool of {destination} ({address}) for {ports} with the hosts: each must be in "
        "it with its address and port, not as a backup, and reachable from the balancer.",
    ),
    "balancer-loses": _make_balancer(
        "connections through {ends} to {what} get no answer", _LOSES
    )._replace(advice={("service", "path"): _LOSES}),
    "balancer-hairpin": _make_balancer(
        "back ends of {ends} do not reach themselves through it on {what}",
        _REFLECT,
    )._replace(
        advice={
            ("service",): _REFLECT,
            ("source", "service"): "See why {source} alone does not reach itself through "
            "{destination} ({address}): its address twice, its routes, its reverse path filter, or "
            "a rule of the balancer that leaves it out.",
        },
        source_is="its routes or addresses",
    ),
    "balancer-never-removes": _make_balancer(
        "{ends} goes on sending {what} to back ends that fail",
        "Have {destination} ({address}) check each back end of {ports} by what says that it is "
        "ready (for the API /readyz over HTTPS): a check that only connects passes while the API "
        "is not ready, and a back end without a check is never taken out.",
    ),
    "balancer-never-returns": _make_balancer(
        "{ends} does not send {what} to back ends that are well again",
        "See why {destination} ({address}) does not take a back end of {ports} in again: the "
        "number of good checks, their interval, and whether it waits for somebody to switch it on.",
    ),
    "balancer-slow": _make_balancer(
        "{ends} is slow to take back ends that fail out of {what}",
        "Shorten the health checks of {destination} ({address}) on {ports}: interval times bad "
        "checks must be below 30 s; OpenShift's documents name 5 or 10 s, 2 good, 3 bad.",
    ),
    "balancer-sticks": _make_balancer(
        "{ends} keeps clients on one back end on {what}",
        "Switch off the persistence of {destination} ({address}) on {ports} (such as balance "
        "source): the row's document forbids it (`persistence: none`), and a client would keep a "
        "back end that fails.",
    ),
}
