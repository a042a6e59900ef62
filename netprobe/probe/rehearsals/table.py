"""All rehearsals that agents can play. Runs without one never import it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from netprobe.model.plan import BALANCER, MULTICAST, OVERLAY, QUALITY, SEGMENT
from netprobe.probe.rehearsals.balancer import BalancerRehearsal
from netprobe.probe.rehearsals.multicast import MulticastRehearsal
from netprobe.probe.rehearsals.overlay import OverlayRehearsal
from netprobe.probe.rehearsals.quality import QualityRehearsal
from netprobe.probe.rehearsals.rehearsal import Rehearsal
from netprobe.probe.rehearsals.segment import SegmentRehearsal

PLAYED: Final[Mapping[str, Rehearsal]] = {
    OVERLAY: OverlayRehearsal(),
    BALANCER: BalancerRehearsal(),
    SEGMENT: SegmentRehearsal(),
    MULTICAST: MulticastRehearsal(),
    QUALITY: QualityRehearsal(),
}
