"""What names look like: all spellings of one that is known, and the signs of one that is not."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

SEPARATORS = re.compile("([._:-]+)")
# Words with a number that name no host: protocols, ciphers, interfaces, machines.
_TECHNICAL = re.compile(
    r"(?:ip|inet|tcp|udp|icmp|http|tls|ssl|ssh|dtls|dns|ntp|ike|bgp|ospf|grpc|sctp|oauth|ldap|smb|nfs"
    r"|sha|md|aes|rsa|dsa|ecdsa|ed|curve|crc|base|utf|iso|chacha|poly|gcm|ctr|cbc|secp|prime"
    r"|eth|en[opsx]\w*|wl\w*|ib|bond|team|br|vmbr|virbr|docker|cni|vlan|veth\w*|cali\w*|cilium\w*"
    r"|lxc\w*|vxlan\w*|genev\w*|gre\w*|tunl|tun|tap|wg|ipvs|ipip|dummy|ovn\w*|kube-ipvs|lo|ifb"
    r"|amd|arm|armv|aarch|ppc|riscv|mips|python|py|port|ports|phase|version|level|step|stage"
    r"|rfc|pid|uid|gid|fd|code|type|status|errno|signal|gc|thresh|day|mtu|ttl|table|rule|finding)"
    r"(?:[-_.]?v?\d.*)?",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"[^\W\d_]{2,}\d+[^\W\d_]?")

# One of up-to-10 is not a name.
_JOINING = ("to", "of", "no", "in", "at", "as", "or", "and", "per")

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


def fold_name(name: str) -> str:
    """Give the form in which names are compared: files and groups have _ where DNS has -."""
    return name.lower().replace("_", "-")


def read_address(text: str) -> IPAddress | None:
    """Give the address that a text is; None for any other."""
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def has_number(text: str) -> bool:
    """Tell names such as worker77 or secret_host_1 from versions, protocols and interfaces."""
    words = SEPARATORS.split(text)[::2]
    if not text[:1].isalpha() or _TECHNICAL.fullmatch(text):
        return False
    return any(map(_is_numbered, ["", *words], words))


def _is_numbered(before: str, word: str) -> bool:
    """Tell whether a word ends in a number, or is one behind a word."""
    name = before if word.isdigit() else word
    if _TECHNICAL.fullmatch(name):
        return False
    behind = word.isdigit() and len(name) > 1 and name.isalpha() and name.lower() not in _JOINING
    return behind or _NUMBERED.fullmatch(word) is not None


def spell_name(name: str) -> Iterator[str]:
    """Give what a name may look like elsewhere: an address as a number, a host without domain."""
    address = read_address(name)
    if address is not None:
        yield from _spell_address(address)
    elif any(map(str.isdigit, name.partition(".")[0])):
        yield name.partition(".")[0]


def _spell_address(address: IPAddress) -> Iterator[str]:
    raw, number = address.packed.hex(), int(address)
    pairs = re.findall("..", raw)
    yield from (raw, f"0x{raw}", f"0x{number:x}", str(number), ":".join(pairs))
    # As the kernel prints it (/proc/net/tcp): each 32 bits as this machine holds them.
    yield "".join("".join(pairs[at : at + 4][::-1]) for at in range(0, len(pairs), 4))
    for text in (str(address), address.exploded):
        yield re.sub("[.:]", "-", text)
        yield text
