"""Texts of others (hosts, purposes, rows) as words that cannot break out of a syntax; names.

They come from reports, inventories and matrices, which other people write. Of addresses, ports and
protocols no syntax writes more than what they are: :func:`check_words` sees to it for all of them.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Iterable

from netprobe.errors import RequestError
from netprobe.model.firewall import FirewallRule, RuleEnd
from netprobe.model.ports import WITH_PORTS
from netprobe.model.printable import clean
from netprobe.model.shapes import PROTOCOL

# Nothing of this ends a string, begins a comment, a variable or a command, or asks for help in any
# of the syntaxes: scripts of sh and PowerShell, nft, the command lines of devices, HCL and YAML.
_UNSAFE = re.compile(r"[^A-Za-z0-9 ._:/,()+=@-]+")
_WORDS = {"→": "to", ";": ","}
_MOST = 200


def plain(text: str, most: int = _MOST) -> str:
    """Give one line of ASCII without any sign that means something to a device."""
    for sign, word in _WORDS.items():
        text = text.replace(sign, word)
    # A word that begins with a dash could be an option, where a text stands alone.
    return _UNSAFE.sub("_", clean(text)).strip()[:most].strip().lstrip("-")


def check_words(rules: Iterable[FirewallRule]) -> None:
    """Raise RequestError where a syntax would have to quote an address or a protocol.

    They stand bare in all syntaxes; who reads files refuses others, and nothing else may get here.
    """
    for rule in rules:
        if not PROTOCOL.fits(rule.protocol):
            raise RequestError(f"{rule.protocol[:_MOST]!r}: expected {PROTOCOL.words}")
        if bool(rule.ports) is not (rule.protocol in WITH_PORTS):
            raise RequestError(f"{rule.id}: a rule for {rule.protocol} with ports {rule.ports}")
        for end in (*rule.sources, *rule.destinations):
            _check_address(end)


def _check_address(end: RuleEnd) -> None:
    try:
        address = ipaddress.ip_address(end.address)
    except ValueError:
        raise RequestError(f"{end.address[:_MOST]!r}: expected an IP address") from None
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
        raise RequestError(f"{end.address[:_MOST]!r}: expected an IP address without a zone")


def symbol(text: str, most: int = 24) -> str:
    """Give a name that every device takes: capital letters, digits and underscores."""
    return re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_")[:most].strip("_") or "HOSTS"


def digest_of(words: Iterable[str]) -> str:
    """Give 6 hexadecimal digits that stand for these words."""
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:6]
