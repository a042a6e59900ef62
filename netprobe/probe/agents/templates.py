"""The packets of one run: each numbered once, sent to an agent before it needs it."""

from __future__ import annotations

from typing import Any

from netprobe.agent.wire import frames as wire
from netprobe.protocols import Protocol

# Template 0 is the empty datagram (docs/decisions/0002-the-wire.md).
EMPTY = 0


class Templates:
    """Numbers for templates; the same packet has the same number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str, int, bool], int] = {}
        self._items: list[dict[str, Any]] = []

    def listener(self, protocol: Protocol, transport: str, family: int) -> int:
        """The number of the request that a listener of ours knows, with nonce and MAC."""
        return self._number(protocol, transport, family, service=False)

    def service(self, protocol: Protocol, transport: str, family: int) -> int:
        """The number of what a live service is asked; EMPTY where nothing safe can be sent."""
        if protocol.service_request(transport, family) is None:
            return EMPTY
        return self._number(protocol, transport, family, service=True)

    def after(self, known: int) -> dict[str, Any]:
        """The templates above the first ``known`` ones, as the wire carries them."""
        items = self._items[known:]
        return {str(known + offset + 1): item for offset, item in enumerate(items)}

    def _number(self, protocol: Protocol, transport: str, family: int, *, service: bool) -> int:
        key = (protocol.name, transport, family, service)
        if key not in self._numbers:
            self._items.append(_item(protocol, transport, family, service))
            self._numbers[key] = len(self._items)
        return self._numbers[key]


def _item(protocol: Protocol, transport: str, family: int, service: bool) -> dict[str, Any]:
    if not service:
        return wire.template_to_json(protocol.template(transport, family))
    request = protocol.service_request(transport, family)
    assert request is not None
    return wire.template_to_json(wire.Template(request, None, None))
