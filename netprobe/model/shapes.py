"""Texts that can become a part of a rule, a command or a name: closed types, checked when read.

Reports, records, requests and plans come from other people, and what they say leaves netprobe
again as firewall rules, tickets and advice. A field of one of these types holds nothing that could
mean more there than what it is; all other texts are for people, and every syntax quotes them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Final

from msgspec import Struct


class TextShape(Struct, frozen=True):
    """The form of a text: all of it matches ``pattern``, which people read as ``words``.

    A pattern is a regular expression that Python and JSON Schema read alike.
    """

    pattern: str
    words: str

    def fits(self, text: str) -> bool:
        """Tell whether a text has this form."""
        return _match_whole(self.pattern, text)


# The names of one run come again in each of its results.
@lru_cache(maxsize=1 << 14)
def _match_whole(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text, re.ASCII) is not None


# Of matrices, requirements, roles and settings; the file of a matrix may give it any first sign.
NAME: Final = TextShape("[A-Za-z0-9_.-]+", 'letters, digits, "-", "_" and "."')
# Of what is required: a row of a matrix, and what is rehearsed of it after the slash.
ROW: Final = TextShape(
    "[A-Za-z0-9_.-]+(/[a-z]+)?", 'letters, digits, "-", "_" and ".", and a rehearsal after "/"'
)
# Ansible takes nearly anything as the name of a host.
LINE: Final = TextShape(
    r"[^\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    r"\ufff9-\uffff\ud800-\udfff]*",
    "one line of text without control characters",
)
PROTOCOL: Final = TextShape(
    r"tcp|udp|icmp|ipproto/([1-9]|[1-9]\d|1\d\d|2[0-4]\d|25[0-4])", "tcp, udp, icmp or ipproto/N"
)
# Also the names that stand for addresses with --redact, and the zone of a link-local address.
ADDRESS: Final = TextShape(
    "[A-Za-z0-9_:][A-Za-z0-9_.:-]*(%[A-Za-z0-9_.-]+)?", "an IP address or a name"
)
LINK: Final = TextShape(
    "[0-9a-f]{2}(:[0-9a-f]{2}){5}", "a link-layer address such as 02:00:00:00:00:01"
)
# What judged a flow: ``no-response``, ``icmp 3/7``, ``unknown-ENODEV``.
REASON: Final = TextShape("[A-Za-z0-9_][A-Za-z0-9_ /.-]*", "the word of a reason")
DAY: Final = TextShape(r"\d{4}-\d\d-\d\d", "a date such as 2027-01-31")
LAST_DAY: Final = TextShape(
    r"\d{4}-\d\d-\d\d|never|permanent", "a date such as 2027-01-31, or never"
)
RULE_ID: Final = TextShape(r"R\d{1,9}", "the name of a rule such as R1")

Name = Annotated[str, NAME]
RowId = Annotated[str, ROW]
LineText = Annotated[str, LINE]
ProtocolText = Annotated[str, PROTOCOL]
AddressText = Annotated[str, ADDRESS]
ReasonWord = Annotated[str, REASON]
Day = Annotated[str, DAY]
LastDay = Annotated[str, LAST_DAY]
RuleId = Annotated[str, RULE_ID]
