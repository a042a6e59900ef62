"""What a time server's answer says, and how far the clocks are apart."""

from __future__ import annotations

import struct

import pytest

from netprobe.model.evidence import ServerClock
from netprobe.protocols.packets.ntp import Ntp, compare_clocks

NOW_S = 1_795_000_000.0
FROM_1900_S = 2_208_988_800


def answer(leap: int, stratum: int, reference: bytes = b"LOCL", shift_s: float = 0.0) -> bytes:
    """A server's 48 bytes: root delay 0.5 s, root dispersion 0.25 s; 1 ms between its times."""
    times = [NOW_S + FROM_1900_S + shift_s, NOW_S + FROM_1900_S + shift_s + 0.001]
    stamps = [struct.pack(">II", int(one) % 2**32, int(one % 1 * 2**32)) for one in times]
    head = bytes((leap << 6 | 4 << 3 | 4, stratum, 6, 0xE8))
    body = struct.pack(">II", 1 << 15, 1 << 14) + reference + bytes(8)
    request = Ntp().service_request("udp", 4) or b""
    return head + body + request[40:48] + b"".join(stamps)


@pytest.mark.parametrize(
    ("data", "clock", "said"),
    [
        (answer(0, 2), ServerClock(2, True, None, 500.0), "NTP stratum 2"),
        (answer(3, 0, bytes(4)), ServerClock(0, False, None, 500.0), "NTP, not synchronised"),
        (answer(3, 0, b"INIT"), ServerClock(0, False, None, 500.0), "NTP, not synchronised"),
        (answer(3, 0, b"DENY"), ServerClock(0, False, "DENY", 500.0), "NTP kiss code DENY"),
        (answer(0, 16), ServerClock(16, False, None, 500.0), "NTP, not synchronised"),
    ],
)
def test_what_it_says(data: bytes, clock: ServerClock, said: str) -> None:
    """Stratum, whether it has time to give, a kiss code, and its distance from the true time."""
    reading = Ntp().read("udp", data)

    assert (reading.recognised, reading.clock, reading.said) == (True, clock, said)


@pytest.mark.parametrize("shift_s", [0.0, 2.5, -3600.0, 40 * 365 * 86400.0])
def test_the_offset(shift_s: float) -> None:
    """Of four times, as NTP does it; also where the server's seconds have come round."""
    reading = Ntp().read("udp", answer(0, 2, shift_s=shift_s))
    assert reading.clock is not None
    # It left 10 ms before the server's clock got it, and was back 11 ms after that.
    found = compare_clocks(reading.clock, reading.times, NOW_S + 0.011, 0.021)

    assert found.offset_ms == pytest.approx(-shift_s * 1000, abs=0.2)
    assert found.error_ms == pytest.approx(10, abs=0.2)
