"""What agents can rehearse, by the word of ``--rehearse``: one file each."""

from collections.abc import Mapping
from typing import Final

from netprobe.model.plan import OVERLAY
from netprobe.probe.rehearsals.overlay import OverlayRehearsal
from netprobe.probe.rehearsals.rehearsal import Rehearsal

PLAYED: Final[Mapping[str, Rehearsal]] = {
    OVERLAY: OverlayRehearsal(),
}
