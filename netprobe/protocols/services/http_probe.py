"""The service that a matrix describes by a request of its own: ``probe: {http: {...}}``."""

from __future__ import annotations

import re
from functools import cache

from netprobe.model.matrix import HttpProbe
from netprobe.model.ports import Ports
from netprobe.protocols.base import printable
from netprobe.protocols.services.hearing import ServiceReply
from netprobe.protocols.services.http_exchange import BODY_LIMIT
from netprobe.protocols.services.identify import Service
from netprobe.protocols.services.pages import name_login, name_proxy

SHOWN_VALUE = 80


@cache
def make_service(probe: HttpProbe) -> Service:
    """Make the service of a request; nobody else has its exact answer where it names content."""

    def recognise(heard: ServiceReply) -> str | None:
        if heard.status is None or _find_lack(probe, heard):
            return None
        version = "HTTP/2 " if heard.answer.http2 else ""
        return f"{probe}: {version}{heard.status} as the matrix says"

    vague = not probe.header and probe.body is None

    def doubt_login(heard: ServiceReply) -> str:
        found = name_login(heard.answer) if vague else ""
        return f"it is {found}; where that is right, say so with body: or header:" if found else ""

    return Service(
        title=f"a server with the matrix's answer to {probe}",
        recognise=recognise,
        paths=(probe.path,),
        tls=probe.tls is not False,
        either=probe.tls is None,
        vague=vague,
        wants=_read_kind(probe),
        http2=probe.http2,
        differs=lambda heard: _find_lack(probe, heard),
        doubts=doubt_login,
    )


def _find_lack(probe: HttpProbe, heard: ServiceReply) -> str:
    """Say what an answer lacks, the plainest first; empty: nothing."""
    answer = heard.answer
    if probe.http2 and not answer.http2:
        return f"HTTP/2 is not spoken ({_word_alpn(heard)})"
    status = answer.status or 0
    if not any(low <= status <= high for low, high in probe.status):
        return f"status {status} where {_word_statuses(probe.status)} was expected"
    if name_proxy(answer):
        return f"status {status} is not the service's"
    for name, pattern in probe.header:
        values = answer.fields.get(name.lower())
        if values is None:
            return f"the header {name} is missing"
        if not any(occurs(pattern, value) for value in values):
            shown = printable(", ".join(values), SHOWN_VALUE)
            wanted = printable(pattern, SHOWN_VALUE)
            return f'the header {name} is "{shown}" where "{wanted}" was expected'
    if probe.body is not None and not occurs(probe.body, answer.text):
        where = f"the first {BODY_LIMIT // 1024} KiB of the body" if answer.is_cut else "the body"
        return f'"{printable(probe.body, SHOWN_VALUE)}" is not in {where}'
    return ""


def occurs(pattern: str, text: str) -> bool:
    """Tell whether a text stands somewhere, as it is or as a regular expression."""
    return pattern in text or re.search(pattern, text) is not None


def _word_alpn(heard: ServiceReply) -> str:
    if not heard.spoke_tls:
        return "without TLS it was answered in HTTP/1.1"
    return f"ALPN chose {heard.seen.alpn or 'nothing'}"


def _word_statuses(statuses: Ports) -> str:
    words = [str(low) if low == high else f"{low} to {high}" for low, high in statuses]
    return " or ".join(words)


def _read_kind(probe: HttpProbe) -> str:
    """Read what kind of body the matrix wants, as far as its header says."""
    kinds = [value for name, value in probe.header if name.lower() == "content-type"]
    return "JSON" if any("json" in value for value in kinds) else ""
