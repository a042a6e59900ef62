"""Stands in for ``typing`` in the bundle: types are for mypy, and importing the real module takes
longer than importing any two modules of the agent.

It has what the agent's modules import from there: ``pack.py`` lets them import it from here. The
codec reads the fields of records, so forms keep what they are made of, as those of ``typing`` do.
"""

from collections import namedtuple


class Form:
    """``List``, ``Optional`` ...; ``List[int]`` is one with ``int`` as its argument."""

    def __init__(self, origin: object = None, arguments: tuple = ()) -> None:  # type: ignore[type-arg]
        self.__origin__ = origin
        self.__args__ = arguments

    def __getitem__(self, arguments: object) -> "Form":
        if not isinstance(arguments, tuple):
            arguments = (arguments,)
        return Form(self.__origin__, (*self.__args__, *arguments))


TYPE_CHECKING = False
Any = Callable = Deque = Iterable = Iterator = Sequence = Set = Type = Union = Form()
Dict = Form(dict)
List = Form(list)
Tuple = Form(tuple)


class _OptionalForm(Form):
    def __getitem__(self, arguments: object) -> Form:
        return Form(None, (arguments, type(None)))


Optional = _OptionalForm()


class _RecordType(type):
    """Makes a ``namedtuple`` of each class that names its fields by annotations."""

    def __new__(mcs, name, bases, namespace):  # type: ignore[no-untyped-def]
        made = super().__new__(mcs, name, bases, namespace)
        if not bases:
            return made
        fields = getattr(made, "__annotations__", {})
        record = namedtuple(name, fields)  # type: ignore[misc]
        record.__annotations__ = fields
        for key, value in namespace.items():
            if not key.startswith("__"):
                setattr(record, key, value)
        return record


class NamedTuple(metaclass=_RecordType):
    """Its subclasses are records; fields cannot have defaults."""
