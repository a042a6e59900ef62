"""The colours of the page, as people see them who cannot tell all colours apart."""

from __future__ import annotations

import itertools
import re

import pytest

from netprobe.report.run.html.document import read_asset
from netprobe.report.run.pair_map import WORST

Vector = tuple[float, float, float]

# Machado, Oliveira and Fernandes 2009, full severity; for linear RGB.
KINDS: dict[str, tuple[Vector, Vector, Vector]] = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216),
               (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413),
               (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602),
               (0.004733, 0.691367, 0.303900)),
}  # fmt: skip
TO_XYZ: tuple[Vector, Vector, Vector] = (
    (0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505),
)  # fmt: skip
WHITE = (0.9505, 1.0, 1.089)
# A traffic light has 16, and two of its colours look alike to one man in twenty.
LEAST_DISTANCE = 30


def times(matrix: tuple[Vector, Vector, Vector], vector: Vector) -> Vector:
    first, second, third = (sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix)
    return (first, second, third)


def lab_of(colour: str, kind: str) -> Vector:
    """A colour of the page in CIELAB, as this kind of eye sees it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (
        one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts
    )
    seen = [min(1.0, max(0.0, one)) for one in times(KINDS[kind], (red, green, blue))]
    xyz = times(TO_XYZ, (seen[0], seen[1], seen[2]))
    x, y, z = (
        one ** (1 / 3) if one > 0.008856 else 7.787 * one + 16 / 116
        for one in (part / white for part, white in zip(xyz, WHITE, strict=True))
    )
    return (116 * y - 16, 500 * (x - y), 200 * (y - z))


@pytest.mark.parametrize("kind", KINDS)
def test_verdicts_are_told_apart(kind: str) -> None:
    """Any two of the six, by the distance of CIE 1976."""
    found = dict(
        re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", read_asset("page.css").split("@media")[0])
    )
    colours = {verdict: lab_of(found[verdict], kind) for verdict in WORST}

    for one, other in itertools.combinations(WORST, 2):
        pairs = zip(colours[one], colours[other], strict=True)
        assert sum((a - b) ** 2 for a, b in pairs) ** 0.5 > LEAST_DISTANCE, (one, other)
