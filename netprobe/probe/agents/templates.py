"""The packets of one run: each numbered once, sent to an agent before it needs it."""

from __future__ import annotations

from collections.abc import Callable

from netprobe.agent.wire.parts import NumberedTemplate
from netprobe.agent.wire.templates import Template, number_template
from netprobe.protocols import Protocol

# Template 0 is the empty datagram (docs/wire.md).
EMPTY = 0


class Templates:
    """Numbers for templates; the same packet has the same number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}
        self._items: list[NumberedTemplate] = []

    def listener(self, protocol: Protocol, transport: str, family: int) -> int:
        """Give the number of the request that a listener of ours knows, with nonce and MAC."""
        key = (protocol.name, transport, family)
        return self._number_template(key, lambda: protocol.template(transport, family))

    def service(self, protocol: Protocol, transport: str, family: int) -> int:
        """Give the number of what a live service is asked; EMPTY where nothing safe can be sent."""
        request = protocol.service_request(transport, family)
        return EMPTY if request is None else self.request(request)

    def request(self, request: bytes) -> int:
        """Give the number of bytes that go out as they are."""
        return self._number_template((request,), lambda: Template(request, None, None))

    def after(self, known: int) -> list[NumberedTemplate]:
        """Give the templates above the first ``known`` ones, as the wire carries them."""
        return self._items[known:]

    def _number_template(self, key: tuple[object, ...], make: Callable[[], Template]) -> int:
        if key not in self._numbers:
            number = self._numbers[key] = len(self._items) + 1
            self._items.append(number_template(number, make()))
        return self._numbers[key]
