"""Labels of a packet filter become distances."""

from __future__ import annotations

import struct

import pytest

from netprobe.agent.net.bpf import EQUAL, LD_BYTE, RETURN, FilterStep, assemble_program


def code(steps: list[FilterStep]) -> list[tuple[int, ...]]:
    """The instructions of a program: opcode, the two distances, and the constant."""
    return list(struct.iter_unpack("=HBBI", assemble_program(steps)))


def test_a_jump_goes_to_its_label() -> None:
    """A distance counts from the next instruction; a label is none."""
    steps: list[FilterStep] = [
        (LD_BYTE, 9, None, None),
        (EQUAL, 6, "yes", None),
        (EQUAL, 17, None, "no"),
        ("yes", 0, None, None),
        (RETURN, 7, None, None),
        ("no", 0, None, None),
        (RETURN, 0, None, None),
    ]

    assert code(steps) == [
        (LD_BYTE, 0, 0, 9), (EQUAL, 1, 0, 6), (EQUAL, 0, 1, 17), (RETURN, 0, 0, 7),
        (RETURN, 0, 0, 0),
    ]  # fmt: skip


def test_a_jump_that_is_too_far_is_an_error() -> None:
    """It has one byte."""
    filler: list[FilterStep] = [(LD_BYTE, 0, None, None)] * 256
    far: list[FilterStep] = [(EQUAL, 1, "end", None), *filler, ("end", 0, None, None)]

    with pytest.raises(struct.error):
        assemble_program(far)
