"""The few words of an ELF file that say for which machine it is, and which loader it wants."""

from __future__ import annotations

import struct

from msgspec import Struct

# e_machine and what ``uname -m`` says there; both byte orders of POWER have one number.
_MACHINES = {
    (3, "<"): "i686",
    (21, "<"): "ppc64le",
    (21, ">"): "ppc64",
    (22, ">"): "s390x",
    (40, "<"): "arm",
    (62, "<"): "x86_64",
    (183, "<"): "aarch64",
    (243, "<"): "riscv64",
    (258, "<"): "loongarch64",
}
_PT_INTERP = 3


class Elf(Struct, frozen=True):
    """``arch`` as ``uname -m`` says it; ``loader`` is a path, None of a static program."""

    arch: str
    loader: str | None


def arch_of(machine: str) -> str:
    """Give the name of a runtime for what ``uname -m`` prints: i586 runs what i686 runs."""
    if machine in ("i386", "i486", "i586"):
        return "i686"
    return "arm" if machine.startswith(("armv", "armhf")) else machine


def read_elf(data: bytes) -> Elf | None:
    """Read the headers of a program; None where it is no ELF file that can be read."""
    if data[:4] != b"\x7fELF" or len(data) < 64:
        return None
    order = "<" if data[5] == 1 else ">"
    machine = struct.unpack_from(order + "H", data, 18)[0]
    try:
        loader = _find_loader(data, order, wide=data[4] == 2)
    except (struct.error, UnicodeDecodeError):
        return None
    return Elf(_MACHINES.get((machine, order), f"machine-{machine}"), loader)


def _find_loader(data: bytes, order: str, *, wide: bool) -> str | None:
    if wide:
        (table,) = struct.unpack_from(order + "Q", data, 32)
        size, count = struct.unpack_from(order + "HH", data, 54)
        place = (order + "Q", 8, order + "Q", 32)
    else:
        (table,) = struct.unpack_from(order + "I", data, 28)
        size, count = struct.unpack_from(order + "HH", data, 42)
        place = (order + "I", 4, order + "I", 16)
    for at in range(table, table + size * count, size or 1):
        if struct.unpack_from(order + "I", data, at)[0] == _PT_INTERP:
            (start,) = struct.unpack_from(place[0], data, at + place[1])
            (length,) = struct.unpack_from(place[2], data, at + place[3])
            return data[start : start + length].rstrip(b"\0").decode("utf-8")
    return None
