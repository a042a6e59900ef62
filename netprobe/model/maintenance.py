"""Times in which hosts may be down: what fails then is no outage."""

from __future__ import annotations

from msgspec import Struct


class MaintenanceWindow(Struct, frozen=True):
    """Hosts, and since when and until when (seconds since 1970, UTC) they are in maintenance."""

    hosts: tuple[str, ...]
    begin: float
    until: float

    def covers(self, moment: float) -> bool:
        """Tell whether it is open at a moment; its end is outside."""
        return self.begin <= moment < self.until
