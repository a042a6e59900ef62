"""A host key that ssh does not trust."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import Struct


class HostKey(Struct, frozen=True, kw_only=True):
    """Why ssh does not trust a host's key.

    ``state``: nobody has accepted a key yet, or it is another one than the accepted one. ``target``
    and ``options`` are what ssh is called with by hand. Of a changed key ssh says its ``name`` in
    the ``file`` of known keys, and which key it is that was ``sent``.
    """

    SPARSE: ClassVar = True

    state: Literal["unknown", "changed"]
    target: str = ""
    options: tuple[str, ...] = ()
    name: str | None = None
    file: str | None = None
    sent: str | None = None
