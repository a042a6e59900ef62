"""Checks of a matrix file beyond types: every name that is referred to is there, once, and fits.

They read the plain values, not the validated model, so that a file with a misspelt key still gets
all its unknown roles and settings reported in the same go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import get_args

from pydantic_core import PydanticCustomError

from netprobe.errors import Problem
from netprobe.load.matrix.models import PROBE_TRANSPORTS, SERVICE_TRANSPORTS, Probe
from netprobe.load.matrix.ports import port_entry
from netprobe.load.matrix.setting_values import Term, parse_term
from netprobe.load.matrix.settings import Known
from netprobe.load.yaml.document import Document, Path, PathStep
from netprobe.load.yaml.wording import quoted, unknown
from netprobe.model.matrix import Condition, Matrix, Setting, SettingRef, SettingType

PROTOCOL_KEYS = ("tcp", "udp", "icmp", "ipproto")
Body = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Checks:
    """One file and the names that it may refer to; ``base`` is the matrix that it extends."""

    document: Document
    base: Matrix | None
    settings: Known
    out: list[Problem]

    def all(self) -> None:
        """Note every problem."""
        roles = frozenset((*self._keys("roles"), *(self.base.roles if self.base else ())))
        self._implied(roles)
        for index, body in enumerate(self._requirements()):
            path = ("requirements", index)
            self._requirement(path, body, roles)
            self._probe(path, body)
            if not any(body.get(key) for key in PROTOCOL_KEYS):
                self._at_key(path, f"nothing to test, expected {' or '.join(PROTOCOL_KEYS)}")
        self._duplicates()
        ids = [str(body["id"]) for body in self._requirements() if isinstance(body.get("id"), str)]
        self._override(roles)
        self._waive(dict.fromkeys((*ids, *self._base_ids())))

    # Roles

    def _implied(self, roles: Collection[str]) -> None:
        implies: dict[str, list[str]] = {}
        if self.base:
            implies = {name: list(role.implies) for name, role in self.base.roles.items()}
        for name in self._keys("roles"):
            path = ("roles", name, "implies")
            implies[name] = [role for _, role in self._role_names(path, roles)]
        told: set[str] = set()
        for name in self._keys("roles"):
            circle = _circle(name, implies)
            if circle and not told & set(circle):
                told.update(circle)
                words = f"role {quoted(name)} implies itself ({' > '.join(circle)})"
                self._at(("roles", name, "implies"), f"{words}, expected no circle")

    def _role_names(
        self, path: tuple[PathStep, ...], roles: Collection[str]
    ) -> Iterator[tuple[tuple[PathStep, ...], str]]:
        """The known role names of a list; unknown ones become problems."""
        raw = self.document.get(path)
        items = [(path, raw)] if isinstance(raw, str) else _items(path, raw)
        for place, name in items:
            if not isinstance(name, str):
                continue
            if name in roles:
                yield place, name
            else:
                self._at(place, unknown("role", name, roles))

    # Requirements

    def _requirement(self, path: tuple[PathStep, ...], body: Body, roles: Collection[str]) -> None:
        for end in ("from", "to"):
            names = [name for _, name in self._role_names((*path, end), roles)]
            self._twice((*path, end), names)
            if body.get(end) == []:
                self._at((*path, end), "the list is empty, expected at least one role")
        for key in ("when", "unless"):
            self._condition((*path, key))
        for index, _ in enumerate(_as_list(body.get("warnings"))):
            self._condition((*path, "warnings", index, "when"))
        for key in ("tcp", "udp"):
            self._ports((*path, key))
        self._protocols((*path, "ipproto"))
        sni = body.get("sni")
        if isinstance(sni, dict) and isinstance(sni.get("setting"), str):
            self._reference((*path, "sni"), sni["setting"], "string")

    def _condition(self, path: tuple[PathStep, ...]) -> None:
        raw = self.document.get(path)
        for name, wanted in raw.items() if isinstance(raw, dict) else ():
            place = (*path, name)
            if name not in self.settings:
                self._at_key(place, unknown("setting", name, self.settings))
                continue
            if wanted == [] or wanted is None:
                self._at(place, "no value stands here, expected at least one")
            setting = self.settings[name]
            if setting is not None:
                items = _items(place, wanted) if isinstance(wanted, list) else [(place, wanted)]
                self._terms(setting, [item for item in items if item[1] is not None])

    def _terms(self, setting: Setting, items: list[tuple[tuple[PathStep, ...], object]]) -> None:
        for place, value in items:
            try:
                parse_term(setting, value)
            except ValueError as error:
                self._at(place, f"setting {quoted(setting.name)}: {error}")

    def _ports(self, path: tuple[PathStep, ...]) -> None:
        """References to settings that are ports, and ports that stand in a list twice."""
        seen: list[tuple[int, int]] = []
        for place, raw in _items(path, self.document.get(path)):
            try:
                entry = port_entry(raw)
            except PydanticCustomError:
                continue
            if isinstance(entry, SettingRef):
                self._reference(place, entry.setting, "port")
                continue
            other = next((o for o in seen if o[0] <= entry[1] and entry[0] <= o[1]), None)
            if other:
                words = f"{_range(entry)} overlaps {_range(other)} of the same list"
                self._at(place, f"{words}, expected every port once")
            seen.append(entry)

    def _protocols(self, path: tuple[PathStep, ...]) -> None:
        raw = self.document.get(path)
        numbers = [item for _, item in _items(path, raw)]
        for index, number in enumerate(numbers):
            if isinstance(number, int) and number in numbers[:index]:
                self._at((*path, index), f"{number} stands in the list twice, expected it once")

    def _probe(self, path: tuple[PathStep, ...], body: Body) -> None:
        """A probe that cannot travel by a TCP or UDP that stands beside it, or by nothing there."""
        name = body.get("probe")
        if not isinstance(name, str) or name not in get_args(Probe):
            return
        fitting = PROBE_TRANSPORTS.get(name, SERVICE_TRANSPORTS)
        given = [key for key in PROTOCOL_KEYS if body.get(key)]
        wrong = [key for key in given if key in ("tcp", "udp") and key not in fitting]
        if given and not set(given) & set(fitting):
            wrong = given
        if wrong:
            words = f"{quoted(name)} does not travel by {' and '.join(wrong)}"
            expected = f"expected it with {' or '.join(fitting)} alone"
            self._at((*path, "probe"), f"{words}, {expected}")

    def _reference(self, place: tuple[PathStep, ...], name: str, kind: SettingType) -> None:
        setting = self.settings.get(name)
        if name not in self.settings:
            fitting = {key for key, s in self.settings.items() if s is None or s.type == kind}
            self._at((*place, "setting"), unknown("setting", name, fitting))
        elif setting is not None and setting.type != kind:
            words = f"setting {quoted(name)} is a {setting.type}, expected one of type {kind}"
            self._at((*place, "setting"), words)

    def _duplicates(self) -> None:
        base_ids = self._base_ids()
        first: dict[str, Problem] = {}
        for index, body in enumerate(self._requirements()):
            name, path = body.get("id"), ("requirements", index, "id")
            if not isinstance(name, str):
                continue
            if name in base_ids:
                words = f"{quoted(name)} is a requirement of the extended matrix"
                self._at(path, f'{words}, expected another id (or "override:" to change that one)')
            elif name in first:
                words = f"the id {quoted(name)} stands here a second time"
                line = f"(first in line {first[name].line})"
                self._at(path, f"{words} {line}, expected every id once")
            else:
                first[name] = self.document.at(path, "")

    # Changes to the extended matrix

    def _override(self, roles: Collection[str]) -> None:
        ids = self._base_ids()
        raw = self.document.get(("override",))
        if raw is not None and self.base is None:
            words = '"override" changes an extended matrix, expected the key "extends" beside it'
            self._at_key(("override",), words)
            return
        for name, body in raw.items() if isinstance(raw, dict) else ():
            path = ("override", name)
            if name not in ids:
                self._at_key(path, unknown("requirement", name, ids))
            if isinstance(body, dict):
                self._requirement(path, body, roles)
                self._probe(path, self._overridden(name, body))

    def _overridden(self, name: str, body: Body) -> Body:
        """What an override leaves of a requirement, as far as its probe is concerned."""
        old = {one.id: one for one in self.base.requirements} if self.base else {}
        keys = (*PROTOCOL_KEYS, "probe")
        return {**{key: getattr(old[name], key) for key in keys if name in old}, **body}

    def _waive(self, ids: Collection[str]) -> None:
        for name in self._keys("waive"):
            if name not in ids:
                self._at_key(("waive", name), unknown("requirement", name, ids))

    # The document

    def _base_ids(self) -> list[str]:
        return [requirement.id for requirement in self.base.requirements] if self.base else []

    def _requirements(self) -> list[Body]:
        raw = self.document.get(("requirements",))
        return [body if isinstance(body, dict) else {"icmp": "?"} for body in _as_list(raw)]

    def _keys(self, section: str) -> list[str]:
        raw = self.document.get((section,))
        return list(raw) if isinstance(raw, dict) else []

    def _twice(self, path: Path, names: list[str]) -> None:
        for index, name in enumerate(names):
            if name in names[:index]:
                self._at(path, f"{quoted(name)} stands in the list twice, expected it once")

    def _at(self, path: Path, text: str) -> None:
        self.out.append(self.document.at(path, text))

    def _at_key(self, path: Path, text: str) -> None:
        self.out.append(self.document.at_key(path, text))


def condition(raw: Mapping[str, object], settings: Known) -> Condition:
    """A condition that was checked, typed by its settings."""
    return Condition(tuple((name, _values(settings[name], raw[name])) for name in raw))


def _values(setting: Setting | None, wanted: object) -> tuple[Term, ...]:
    assert setting is not None
    return tuple(parse_term(setting, value) for value in _as_list(wanted, single=True))


def _as_list(raw: object, single: bool = False) -> list[object]:
    if isinstance(raw, list):
        return raw
    return [raw] if single else []


def _items(path: tuple[PathStep, ...], raw: object) -> list[tuple[tuple[PathStep, ...], object]]:
    return [((*path, index), item) for index, item in enumerate(_as_list(raw))]


def _circle(start: str, implies: Mapping[str, Collection[str]]) -> list[str]:
    """The way from a role back to itself, or nothing."""
    ways = [[start]]
    seen: set[str] = set()
    while ways:
        way = ways.pop(0)
        for role in implies.get(way[-1], ()):
            if role == start:
                return [*way, start]
            if role not in seen:
                seen.add(role)
                ways.append([*way, role])
    return []


def _range(ports: tuple[int, int]) -> str:
    return str(ports[0]) if ports[0] == ports[1] else f"{ports[0]}-{ports[1]}"
