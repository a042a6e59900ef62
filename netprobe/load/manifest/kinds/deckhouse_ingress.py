"""IngressNginxController of Deckhouse: its inlet decides which ports are open."""

from __future__ import annotations

from collections.abc import Iterator

from netprobe.load.manifest.kinds.shared import say_setting
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import Said


def read_ingress_controller(one: Manifest) -> Iterator[Said]:
    """Say the inlet."""
    if one.has("spec", "inlet"):
        yield say_setting(one, "inlet", ("spec", "inlet"), [one.text("spec", "inlet")])
