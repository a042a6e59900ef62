"""One object of a file: its values by their path; a value of the wrong kind is a problem."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from msgspec import Struct

from netprobe.load.manifest.said import Origin
from netprobe.load.yaml.document import Document, PathStep, YamlPath
from netprobe.load.yaml.scalars import text_of
from netprobe.load.yaml.wording import what_it_is
from netprobe.model.ports import MAX_PORT, MIN_PORT
from netprobe.model.printable import clean

_MAX_SHOWN = 120
T = TypeVar("T")


class Manifest(Struct, frozen=True):
    """An object of a file. ``base`` leads to it: lists of ``oc get -o yaml`` hold many."""

    document: Document
    base: tuple[PathStep, ...]
    kind: str

    @property
    def name(self) -> str:
        """Its metadata.name; empty where it has none."""
        value = self.get("metadata", "name")
        return value if isinstance(value, str) else ""

    @property
    def namespace(self) -> str:
        """Its metadata.namespace; empty where it has none."""
        value = self.get("metadata", "namespace")
        return value if isinstance(value, str) else ""

    @property
    def title(self) -> str:
        """Kind and name, for sentences."""
        return f"{self.kind} {clean(self.name)}".strip()

    def get(self, *path: PathStep) -> object:
        """Give the value that the path leads to; None where it leads nowhere."""
        return self.document.get((*self.base, *path))

    def has(self, *path: PathStep) -> bool:
        """Tell whether something stands there; an empty text is as good as nothing."""
        return self.get(*path) not in (None, "")

    def text(self, *path: PathStep) -> str:
        """Give a text or number as it is written; empty where nothing stands there."""
        value = self.get(*path)
        if value is None:
            return ""
        if isinstance(value, dict | list):
            self.problem(f"{what_it_is(value)}, expected text", *path)
            return ""
        return text_of(value).strip()

    def number(self, *path: PathStep) -> int | None:
        """Give a whole number that is not negative; None where nothing stands there."""
        value = self.get(*path)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            self.problem(f"{what_it_is(value)}, expected a whole number", *path)
            return None
        return int(value)

    def port(self, *path: PathStep) -> int | None:
        """Give a port; None where nothing or 0 (one that is chosen later) stands there."""
        value = self.number(*path)
        if value is not None and value > MAX_PORT:
            expected = f"expected {MIN_PORT} to {MAX_PORT}"
            self.problem(f"{value} is no port, {expected}", *path)
            return None
        return value or None

    def boolean(self, *path: PathStep) -> bool | None:
        """Give true or false; None where nothing stands there."""
        return self._read_typed(bool, "true or false", path)

    def keys(self, *path: PathStep) -> list[str]:
        """Give the keys of a mapping; none where nothing stands there."""
        return list(self._read_typed(dict, "a mapping (keys and values)", path) or ())

    def each(self, *path: PathStep) -> Iterator[tuple[PathStep, ...]]:
        """Give the path of every element of a list."""
        for index in range(len(self._read_typed(list, "a list", path) or ())):
            yield (*path, index)

    def _read_typed(self, kind: type[T], expected: str, path: tuple[PathStep, ...]) -> T | None:
        value = self.get(*path)
        if value is None or isinstance(value, kind):
            return value
        self.problem(f"{what_it_is(value)}, expected {expected}", *path)
        return None

    def place(self, *path: PathStep) -> str:
        """Give file:line:column of the value, or of what is nearest to it."""
        line, column = self.document.mark_of((*self.base, *path))
        return f"{self.document.file}:{line}:{column}"

    def origin(self, *path: PathStep, shown: str | None = None) -> Origin:
        """Tell where a value stands; ``shown`` is what to show of one that holds a password."""
        text = self.text(*path) if shown is None else shown
        text = clean(text)
        if len(text) > _MAX_SHOWN:
            text = text[: _MAX_SHOWN - 3] + "..."
        return Origin(self.place(*path), path_text(path), text)

    def problem(self, text: str, *path: PathStep) -> None:
        """Add a problem at the value, or at what is nearest to it."""
        self.document.add_problem((*self.base, *path), text)


def path_text(path: YamlPath) -> str:
    """Write a path as people do: spec.services[0].service."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")
