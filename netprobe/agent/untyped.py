"""Stands in for ``typing`` in the bundle: types are for mypy, and importing the real module takes
longer than importing any two modules of the agent.

It has what the agent's modules import from there: ``pack.py`` lets them import it from here.
"""

from collections import namedtuple


class _Form:
    """``Any``, and ``List``, which gives itself for ``List[int]``."""

    def __getitem__(self, _arguments: object) -> "_Form":
        return self


TYPE_CHECKING = False
Any = Callable = Deque = Dict = Iterable = Iterator = List = _Form()
Optional = Sequence = Set = Tuple = Union = _Form()


class _Records(type):
    """Makes a ``namedtuple`` of each class that names its fields by annotations."""

    def __new__(mcs, name, bases, namespace):  # type: ignore[no-untyped-def]
        made = super().__new__(mcs, name, bases, namespace)
        if not bases:
            return made
        record = namedtuple(name, made.__annotations__)  # type: ignore[misc]
        for key, value in namespace.items():
            if not key.startswith("__"):
                setattr(record, key, value)
        return record


class NamedTuple(metaclass=_Records):
    """Its subclasses are records; fields cannot have defaults."""
