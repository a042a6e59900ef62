"""Stands in for ``typing`` in the bundle: types are for mypy, and importing the real module takes
longer than importing any two modules of the agent.

It has what the agent's modules import from there: ``pack.py`` lets them import it from here. The
codec reads the fields of records, so forms keep what they are made of, as those of ``typing`` do.
"""

from operator import itemgetter

try:
    # What namedtuple has since Python 3.8; a property takes three times as long.
    from _collections import _tuplegetter  # type: ignore[import-not-found]
except ImportError:
    _tuplegetter = None


class Form:
    """``List``, ``Optional`` ...; ``List[int]`` is one with ``int`` as its argument."""

    def __init__(self, origin: object = None, arguments: tuple = ()) -> None:  # type: ignore[type-arg]
        self.__origin__ = origin
        self.__args__ = arguments

    def __getitem__(self, arguments: object) -> "Form":
        if not isinstance(arguments, tuple):
            arguments = (arguments,)
        return Form(self.__origin__, (*self.__args__, *arguments))


Any = Callable = Deque = Iterable = Iterator = Sequence = Set = Type = Union = Form()
Dict = Form(dict)
List = Form(list)
Tuple = Form(tuple)


class _OptionalForm(Form):
    def __getitem__(self, arguments: object) -> Form:
        return Form(None, (arguments, type(None)))


Optional = _OptionalForm()


def _make_getter(at: int) -> object:
    return property(itemgetter(at)) if _tuplegetter is None else _tuplegetter(at, "")


def _make_record(cls, *values, **named):  # type: ignore[no-untyped-def]
    if named:
        values = (*values, *[named.pop(field) for field in cls._fields[len(values) :]])
    if named or len(values) != len(cls._fields):
        raise TypeError("%s needs %s" % (cls.__name__, ", ".join(cls._fields)))
    return tuple.__new__(cls, values)


def _replace_fields(self, **named):  # type: ignore[no-untyped-def]
    return self.__class__(
        *[named.pop(field, value) for field, value in zip(self._fields, self)], **named
    )


def _describe_record(self):  # type: ignore[no-untyped-def]
    values = zip(self._fields, self)
    return "%s(%s)" % (self.__class__.__name__, ", ".join("%s=%r" % value for value in values))


class _RecordType(type):
    """Makes a tuple with named fields of each class that names them by annotations.

    ``collections.namedtuple`` compiles source for each class. With the messages of the wire that
    would double the time that Python 3.6 takes to import the agent.
    """

    def __new__(mcs, name, bases, namespace):  # type: ignore[no-untyped-def]
        if not bases:
            return super().__new__(mcs, name, bases, namespace)
        record = type(
            name,
            (tuple,),
            {
                "__new__": _make_record,
                "__repr__": _describe_record,
                "_replace": _replace_fields,
                "__slots__": (),
                **namespace,
            },
        )
        fields = tuple(getattr(record, "__annotations__", {}))
        record._fields = fields  # type: ignore[attr-defined]
        for at, field in enumerate(fields):
            setattr(record, field, _make_getter(at))
        return record


class NamedTuple(metaclass=_RecordType):
    """Its subclasses are records; fields cannot have defaults."""
