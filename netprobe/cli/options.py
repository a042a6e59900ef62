"""Options of commands as fields of a class: each is written once, with its type for verbs.

A field's value is its option or argument (``option``, ``flag``, ``argument`` ...). ``take_options``
gives a command all of them, and its function the options that were given, as one value.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, dataclass_transform

import click

from netprobe.cli.given import FILE
from netprobe.errors import RequestError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

RUN_FORMATS: Final = (
    "text", "brief", "wide", "map", "json", "html", "junit", "markdown", "github",
)  # fmt: skip
DIFF_FORMATS: Final = ("text", "json", "markdown")
TUNNEL_FORMATS: Final = ("text", "json", "markdown")
HISTORY_FORMATS: Final = ("text", "json", "csv", "html")
AUDIT_FORMATS: Final = ("text", "json", "junit")
MATRIX_FORMATS: Final = ("text", "json", "yaml")
# Those of ``netprobe.request.syntaxes``, which the help does not import.
REQUEST_FORMATS: Final = (
    "markdown", "text", "json", "csv", "xlsx", "nftables", "iptables", "firewalld", "tufin",
    "algosec", "cisco-asa", "cisco-ios", "paloalto", "fortios", "junos", "terraform-aws",
    "terraform-openstack", "calico", "windows", "ufw", "aerleon",
)  # fmt: skip
PAGE_FORMATS: Final = ("text", "json")  # of every other verb
PROTOCOLS: Final = ("tcp", "udp", "icmp", "ipproto")

_places = itertools.count()


class Parameter(NamedTuple):
    """An option or argument. ``place``: the help lists what was written first before the others.

    ``add`` gives it to a command, under the name of its field. Any: click's decorators take and
    give whatever they stand on.
    """

    place: int
    add: Callable[[str], Callable[[Any], Any]]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class AskedOptions(SimpleNamespace):
    """What a command is asked; TypeError where an option was given no value.

    To type checkers a dataclass. Thirty real ones would take a third of the time of ``--help``.
    """

    # Any: the values have the types of their fields.
    def __init__(self, **values: Any) -> None:
        left = options_of(type(self)).keys() - values.keys()
        if left:
            raise TypeError(f"{type(self).__name__}: no value for {', '.join(sorted(left))}")
        super().__init__(**values)


Asked = TypeVar("Asked", bound=AskedOptions)


def options_of(kind: type[AskedOptions]) -> dict[str, Parameter]:
    """The options and arguments of a class and of those that it is made of, by field."""
    named = ((name, getattr(kind, name)) for name in dir(kind))
    return {name: value for name, value in named if isinstance(value, Parameter)}


# Any: the type of an option is that of its field.
def option(*names: str, **attributes: Any) -> Any:
    """Give an option that ``NETPROBE_<NAME>`` sets too."""
    long = next(name for name in names if name.startswith("--"))
    variable = "NETPROBE_" + long.split("/")[0].lstrip("-").upper().replace("-", "_")
    attributes = {"show_default": True, "envvar": variable, **attributes}
    return Parameter(next(_places), lambda name: click.option(*names, name, **attributes))


def repeat_option(*names: str, metavar: str, text: str, **attributes: Any) -> Any:
    """Give an option that may be given several times."""
    return option(*names, multiple=True, metavar=f"{metavar}...", help=text, **attributes)


def flag(*words: str) -> Any:
    """Give an option without a value: its names, then the words of the help."""
    *names, text = words
    return option(*names, is_flag=True, show_default=False, help=text)


def file_option(*words: str, **attributes: Any) -> Any:
    """Give an option that names a file or folder: its names, metavar, and the words of the help."""
    *names, metavar, text = words
    return option(*names, type=FILE, metavar=metavar, help=text, **attributes)


def number(name: str, low: int, high: int, text: str, **attributes: Any) -> Any:
    """Give a whole number within limits."""
    return option(name, type=click.IntRange(low, high), metavar="N", help=text, **attributes)


def argument(**attributes: Any) -> Any:
    """Give a word without an option's name."""
    return Parameter(next(_places), lambda name: click.argument(name, **attributes))


def again(parameter: Any) -> Any:
    """Give an option of another class, listed where this is written."""
    return parameter._replace(place=next(_places))


def take_options(
    kind: type[Asked], *first: str
) -> Callable[[Callable[[Asked], int]], Callable[..., int]]:
    """Give a command the options of a class, those of these names first.

    The others follow in the order in which they are written.
    """
    found = options_of(kind)
    rest = sorted(found.keys() - set(first), key=lambda name: found[name].place)

    def decorate(verb: Callable[[Asked], int]) -> Callable[..., int]:
        @functools.wraps(verb)
        def command(**options: Any) -> int:
            return verb(kind(**options))

        for name in reversed((*first, *rest)):
            found[name].add(name)(command)
        return command

    return decorate


def complete_matrix(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of bundled matrices, or files where a path was begun."""
    from click.shell_completion import CompletionItem

    from netprobe.load.matrix.bundled import bundled_names

    if "/" in incomplete or incomplete.startswith("."):
        return [CompletionItem(incomplete, type="file")]
    return [CompletionItem(name) for name in bundled_names() if name.startswith(incomplete)]


def complete_format(formats: tuple[str, ...]) -> Callable[..., list[CompletionItem]]:
    """Give what completes one of these words."""

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        return [CompletionItem(name) for name in formats if name.startswith(incomplete)]

    return complete


def output_option(formats: tuple[str, ...] = PAGE_FORMATS) -> Any:
    """``-o FORMAT[=FILE]``, repeatable."""
    return repeat_option(
        "-o",
        "--output",
        metavar="FORMAT[=FILE]",
        show_default=formats[0],
        shell_complete=complete_format(formats),
        text=f"What to print, or to write to a file: {', '.join(formats)}.",
    )


def require_matrix(matrices: Sequence[str]) -> None:
    """Raises RequestError where no matrix is named."""
    if not matrices:
        raise RequestError(
            "no matrix: give --matrix NAME or FILE (`netprobe matrix list` shows the bundled ones)"
        )
