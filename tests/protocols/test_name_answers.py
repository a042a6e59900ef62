"""Questions for names, and their answers, against dnspython's own messages."""

from __future__ import annotations

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest

from netprobe.protocols.packets.dns import NameAnswer, question, read_answer


def answer(*records: str, rcode: int = 0, flags: int = 0, tcp: bool = False) -> bytes:
    """What a server sends to our question for x.test; a record may have another owner."""
    asked = question("x.test", "A", tcp=False, most_bytes=4096)
    message = dns.message.make_response(dns.message.from_wire(asked))
    message.set_rcode(dns.rcode.Rcode(rcode))
    message.flags |= flags
    for text in records:
        words = text.split(" ", 1)
        owner = words[0] if words[0].endswith(".") else "x.test."
        kind, value = (words[1] if words[0] == owner else text).split(" ", 1)
        section = message.authority if kind == "SOA" else message.answer
        section.append(dns.rrset.from_text(owner, 60, "IN", kind, value))
    wire = message.to_wire()
    return len(wire).to_bytes(2, "big") + wire if tcp else wire


@pytest.mark.parametrize("most", [None, 1232, 4096])
def test_a_question_says_how_much_it_takes(most: int | None) -> None:
    """With EDNS the size, and without it no EDNS at all; recursion is desired."""
    asked = dns.message.from_wire(question("x.test", "A", tcp=False, most_bytes=most))

    assert (asked.edns, asked.payload) == ((-1, 0) if most is None else (0, most))
    assert asked.flags & dns.flags.RD


def test_an_answer_is_read_whole() -> None:
    """Addresses, the code, the serial of the zone, and that it was cut off."""
    soa = "SOA ns.test. root.test. 7 1 1 1 1"
    found = read_answer(answer("A 10.0.0.1", soa, flags=dns.flags.TC), tcp=False)

    assert found is not None
    assert (found.rcode, found.addresses) == ("NOERROR", ("10.0.0.1",))
    assert (found.truncated, found.serial) == (True, 7)
    assert read_answer(answer(rcode=dns.rcode.NXDOMAIN), tcp=False) == NameAnswer(
        "NXDOMAIN", (), len(answer(rcode=dns.rcode.NXDOMAIN))
    )


@pytest.mark.parametrize(
    ("records", "addresses", "serial"),
    [
        (("CNAME y.test.", "y.test. CNAME z.test.", "z.test. A 10.0.0.9"), ("10.0.0.9",), None),
        (("X.Test. A 10.0.0.9",), ("10.0.0.9",), None),
        (("other.test. A 10.0.0.9", "A 10.0.0.1"), ("10.0.0.1",), None),
        # A server that only has the zone above says so in its authority.
        (("test. SOA ns.test. root.test. 5 1 1 1 1",), (), None),
        (("SOA ns.test. root.test. 5 1 1 1 1",), (), 5),
    ],
)
def test_records_of_other_names_say_nothing(
    records: tuple[str, ...], addresses: tuple[str, ...], serial: int | None
) -> None:
    """Only what the name itself, or what it is an alias of, has."""
    found = read_answer(answer(*records), tcp=False)

    assert found is not None
    assert (found.addresses, found.serial) == (addresses, serial)


def test_of_a_long_answer_the_beginning_is_enough() -> None:
    """Agents give back 4 KiB: the size is what the length in front says."""
    data = answer("A 10.0.0.1", tcp=True)
    found = read_answer(data[:-3], tcp=True)

    assert found is not None
    assert found.size == len(data) - 2


def test_our_own_question_is_no_answer() -> None:
    """A reflector tells nothing of a name."""
    assert read_answer(question("x.test", "A", tcp=False), tcp=False) is None
