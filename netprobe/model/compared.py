"""Records of which some fields do not count where two are compared."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

from msgspec import Struct


class PartlyCompared(Struct, frozen=True, eq=False):
    """Two are equal if all fields but the ``UNCOMPARED`` ones are."""

    UNCOMPARED: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        compared = _compared_of(type(self))
        return bool(compared(self) == compared(other))

    def __hash__(self) -> int:
        return hash(_compared_of(type(self))(self))


@cache
def _compared_of(kind: type[PartlyCompared]) -> Callable[[Any], Any]:
    """Give what reads the fields of a kind that count."""
    names = (name for name in kind.__struct_fields__ if name not in kind.UNCOMPARED)
    return operator.attrgetter(*names)
