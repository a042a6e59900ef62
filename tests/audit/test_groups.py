"""Paths of control groups, as systemd, container runtimes and both versions of it write them."""

from __future__ import annotations

import pytest

from netprobe.audit.sightings import GroupPlace, place_of

UID = "0f3c1d2e-aaaa-4000-8000-00000000000a"
LOW = UID.replace("-", "_")
HASH = "0123456789abcdef0123456789abcdef"
LONG = "c0ffee" + "0" * 58
SHORT = LONG[:12]
SLICE = f"/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{LOW}.slice"


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("0::/system.slice/sshd.service", ("sshd.service", None, None)),
        ("0::/system.slice/system-getty.slice/getty@tty1.service",
         ("getty@tty1.service", None, None)),
        ("0::/user.slice/user-7.slice/user@7.service/app.slice/web.service",
         ("web.service", None, None)),
        ("0::/user.slice/user-0.slice/session-3.scope", ("session-3.scope", None, None)),
        ("0::/init.scope", ("init.scope", None, None)),
        ("0::/", (None, None, None)),
        ("", (None, None, None)),
        # CRI-O and containerd with systemd's driver, version 2.
        (f"0::{SLICE}/crio-{LONG}.scope", (None, UID, SHORT)),
        (f"0::{SLICE}/crio-{LONG}.scope/container", (None, UID, SHORT)),
        (f"0::{SLICE}/cri-containerd-{LONG}.scope", (None, UID, SHORT)),
        # The driver cgroupfs; pods of the guaranteed class have no folder of a class.
        (f"0::/kubepods/burstable/pod{UID}/{LONG}", (None, UID, SHORT)),
        (f"0::/kubepods/pod{UID}/{LONG}", (None, UID, SHORT)),
        # A static pod: its uid is the hash of its file.
        (f"0::/kubepods.slice/kubepods-pod{HASH}.slice/crio-{LONG}.scope", (None, HASH, SHORT)),
        # containerd that was started by systemd, with the driver cgroupfs.
        (f"0::/system.slice/containerd.service/kubepods-burstable-pod{LOW}.slice:cri-containerd:{LONG}",
         (None, UID, SHORT)),
        # A container without a pod.
        (f"0::/machine.slice/libpod-{LONG}.scope", (f"libpod-{LONG}.scope", None, SHORT)),
        # Version 1: every controller has a path, and systemd its own.
        (f"9:name=systemd:/system.slice/a.service\n4:memory:/some/other/{LONG}\n0::/",
         ("a.service", None, None)),
        (f"9:name=systemd:/\n4:memory:/kubepods/besteffort/pod{UID}/{LONG}\n0::/",
         (None, UID, SHORT)),
    ],
)  # fmt: skip
def test_a_control_group_names_unit_or_pod(
    text: str, place: tuple[str | None, str | None, str | None]
) -> None:
    """Unit, pod's uid, and the container's id in short form."""
    assert place_of(f"{text}\n") == GroupPlace(*place)
