"""What the reasons of rehearsals mean."""

from collections.abc import Mapping
from typing import Final

from netprobe.model.reason import Reason

SWITCH_OFF = (
    "{commands} (netprobe has not done it); or have the driver or the hypervisor mended, or let "
    "the CNI switch off transmit checksums on its tunnel device."
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
}
