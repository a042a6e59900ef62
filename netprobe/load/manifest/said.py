"""What a manifest says that a run can use: each thing with the place where it stands."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from netprobe.model.inventory import Address, Proxy, Taken


class Origin(Struct, frozen=True):
    """Where something stands: ``place`` is file:line:column, ``path`` such as spec.platform.type.

    ``text`` is the value as it is shown, without passwords.
    """

    place: str
    path: str
    text: str

    def taken(self, gives: str) -> Taken:
        """Say what became of it."""
        return Taken(self.place, self.path, self.text, gives)


class SettingSaid(Struct, frozen=True):
    """A setting. Of ``values`` a matrix takes the first that it knows: names differ between them.

    ``items`` says of elements of a list whether they are in it; the others stay as they are.
    ``weak``: it counts where nothing else says it. ``reason`` is why, where the value does not
    stand in the manifest in so many words.
    """

    origin: Origin
    name: str
    values: tuple[object, ...] = ()
    items: Mapping[str, bool] = field(default_factory=dict)
    weak: bool = False
    reason: str = ""


class AddressSaid(Struct, frozen=True):
    """An address or name of a host with these roles; ``owner`` begins the host's name.

    ``name`` is the host's own name, where the manifest gives one.
    """

    origin: Origin
    owner: str
    roles: tuple[str, ...]
    address: Address
    name: str = ""


class ProxySaid(Struct, frozen=True):
    """The proxy that software on the hosts of these roles has; for one ``service`` or for all."""

    origin: Origin
    roles: tuple[str, ...]
    proxy: Proxy
    service: str = ""


class NoteSaid(Struct, frozen=True):
    """A sentence for the reader, with its place."""

    place: str
    text: str


Said = SettingSaid | AddressSaid | ProxySaid | NoteSaid
