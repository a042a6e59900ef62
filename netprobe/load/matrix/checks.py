"""Checks of a matrix file beyond types: every name that is referred to is there, once, and fits.

They read the plain values, not the validated model, so that a file with a misspelt key still gets
all its unknown roles and settings reported in the same go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import get_args

from netprobe.load.matrix.fields import port_entry
from netprobe.load.matrix.probe_models import PROBE_TRANSPORTS, SERVICE_TRANSPORTS, Probe
from netprobe.load.matrix.setting_values import parse_term
from netprobe.load.matrix.settings import Known
from netprobe.load.yaml.document import Document, PathStep
from netprobe.load.yaml.wording import quoted, unknown
from netprobe.model.matrix import HttpProbe, Matrix, SettingRef, SettingType, fold_role
from netprobe.model.ports import PortRange

# Keys that only rows of TCP have.
_OF_CONNECTIONS = ("keepalive", "persistence")

PROTOCOL_KEYS = ("tcp", "udp", "icmp", "ipproto")
Body = Mapping[str, object]
KeyPath = tuple[PathStep, ...]


class Checks:
    """One file and the names that it may refer to; ``base`` is the matrix that it extends."""

    def __init__(self, document: Document, base: Matrix | None, settings: Known) -> None:
        self.document = document
        self.base = base
        self.settings = settings
        self.base_requirements = {one.id: one for one in base.requirements} if base else {}
        self.roles = frozenset((*document.items(("roles",)), *(base.roles if base else ())))

    def check_all(self) -> None:
        """Note every problem."""
        self._check_implied_roles()
        self._check_aliases()
        for name in self.document.items(("settings",)):
            if self.document.get(("settings", name, "resolves_to")) is not None:
                self._check_role_names(("settings", name, "resolves_to"))
        requirements = [
            (path, body)
            for path, body in self._list_items(("requirements",))
            if isinstance(body, dict)
        ]
        for path, body in requirements:
            self._check_requirement(path, body)
            self._check_probe(path, body)
            self._check_denied(path, body)
            self._check_connections(path, body)
            if not any(body.get(key) for key in PROTOCOL_KEYS):
                words = (
                    f"nothing to test, expected {' or '.join(PROTOCOL_KEYS)}, such as tcp: [6443]"
                )
                self.document.add_key_problem(path, words)
        self._check_port_groups()
        own_ids = self._check_ids([((*path, "id"), body.get("id")) for path, body in requirements])
        self._check_overrides()
        self._check_any_of(requirements)
        self._check_claims()
        ids = dict.fromkeys((*own_ids, *self.base_requirements))
        for name in self.document.items(("waive",)):
            if name not in ids:
                self.document.add_key_problem(("waive", name), unknown("requirement", name, ids))

    # Roles

    def _check_implied_roles(self) -> None:
        implies: dict[str, Collection[str]] = {}
        if self.base:
            implies = {name: role.implies for name, role in self.base.roles.items()}
        own = self.document.items(("roles",))
        for name in own:
            implies[name] = self._check_role_names(("roles", name, "implies"))
        told: set[str] = set()
        for name in own:
            circle = _find_circle(name, implies)
            if circle and not told & set(circle):
                told.update(circle)
                words = f"role {quoted(name)} implies itself ({' > '.join(circle)})"
                self.document.add_problem(
                    ("roles", name, "implies"), f"{words}, expected no circle"
                )

    def _check_aliases(self) -> None:
        """An alias that could mean two roles; ``_`` and ``-`` are the same in it."""
        owners = {fold_role(name): name for name in self.roles}
        of_base = self.base.roles.values() if self.base else ()
        own = self.document.items(("roles",))
        owners |= {
            fold_role(word): role.name
            for role in of_base
            if role.name not in own
            for word in role.aliases
        }
        for name in own:
            for place, word in self._list_items(("roles", name, "aliases")):
                owner = owners.setdefault(fold_role(str(word)), name)
                if owner != name:
                    words = f"{quoted(word)} means the role {quoted(owner)} already"
                    self.document.add_problem(place, f"{words}, expected one role a name")

    def _check_role_names(self, path: KeyPath) -> list[str]:
        """The known role names of a list, or a single one; unknown ones become problems."""
        known: list[str] = []
        for place, name in self._list_items(path) or [(path, self.document.get(path))]:
            if isinstance(name, str) and name in self.roles:
                known.append(name)
            elif isinstance(name, str):
                self.document.add_problem(place, unknown("role", name, self.roles))
        return known

    # Requirements

    def _check_requirement(self, path: KeyPath, body: Body) -> None:
        for end in ("from", "to"):
            place = (*path, end)
            names = self._check_role_names(place)
            for index, name in enumerate(names):
                self._check_once(place, quoted(name), name in names[:index])
            if body.get(end) == []:
                self.document.add_problem(place, "the list is empty, expected at least one role")
        warnings = [place for place, _ in self._list_items((*path, "warnings"))]
        for place in ((*path, "when"), (*path, "unless"), *((*one, "when") for one in warnings)):
            self._check_condition(place)
        for key in ("tcp", "udp"):
            self._check_ports((*path, key))
        numbers = self._list_items((*path, "ipproto"))
        for index, (place, number) in enumerate(numbers):
            is_second = any(number == earlier for _, earlier in numbers[:index])
            self._check_once(place, str(number), isinstance(number, int) and is_second)
        sni = body.get("sni")
        if isinstance(sni, dict) and isinstance(sni.get("setting"), str):
            self._check_reference((*path, "sni"), sni["setting"], "string")

    def _check_once(self, place: KeyPath, text: str, is_second: bool) -> None:
        if is_second:
            words = f"{text} stands in the list twice, expected it once"
            self.document.add_problem(place, words)

    def _check_condition(self, path: KeyPath) -> None:
        for name, wanted in self.document.items(path).items():
            path_of_name = (*path, name)
            if name not in self.settings:
                words = unknown("setting", name, self.settings)
                self.document.add_key_problem(path_of_name, words)
                continue
            if wanted == [] or wanted is None:
                words = "no value stands here, expected at least one"
                self.document.add_problem(path_of_name, words)
                continue
            setting = self.settings[name]
            for place, value in self._list_items(path_of_name) or [(path_of_name, wanted)]:
                try:
                    if setting is not None:
                        parse_term(setting, value)
                except ValueError as error:
                    self.document.add_problem(place, f"setting {quoted(name)}: {error}")

    def _check_ports(self, path: KeyPath) -> None:
        """References to settings that are ports, and ports that stand in a list twice."""
        seen: list[PortRange] = []
        for place, raw in self._list_items(path):
            try:
                entry = port_entry(raw)
            except ValueError:
                continue
            if isinstance(entry, SettingRef):
                self._check_reference(place, entry.setting, "port")
                continue
            other = next((o for o in seen if o[0] <= entry[1] and entry[0] <= o[1]), None)
            if other:
                words = f"{_range_text(entry)} overlaps {_range_text(other)} of the same list"
                self.document.add_problem(place, f"{words}, expected every port once")
            seen.append(entry)

    def _check_port_groups(self) -> None:
        """Ports that the document sets apart: each entry has some, and its names are known."""
        for key in ("ranges", "retired"):
            for path, body in self._list_items((key,)):
                self._check_condition((*path, "when"))
                for protocol in ("tcp", "udp"):
                    self._check_ports((*path, protocol))
                if isinstance(body, dict) and not (body.get("tcp") or body.get("udp")):
                    self.document.add_key_problem(path, "no port stands here, expected tcp or udp")

    def _check_reference(self, place: KeyPath, name: str, kind: SettingType) -> None:
        setting = self.settings.get(name)
        if name not in self.settings:
            fitting = {key for key, s in self.settings.items() if s is None or s.type == kind}
            self.document.add_problem((*place, "setting"), unknown("setting", name, fitting))
        elif setting is not None and setting.type != kind:
            words = f"setting {quoted(name)} is a {setting.type}, expected one of type {kind}"
            self.document.add_problem((*place, "setting"), words)

    def _check_probe(self, path: KeyPath, body: Body) -> None:
        """A probe that cannot travel by a TCP or UDP that stands beside it, or by nothing there."""
        probe = body.get("probe")
        is_http = isinstance(probe, HttpProbe | dict)
        if not is_http and (not isinstance(probe, str) or probe not in get_args(Probe)):
            return
        name = "http" if is_http else str(probe)
        fitting = PROBE_TRANSPORTS.get(name, SERVICE_TRANSPORTS)
        given = [key for key in PROTOCOL_KEYS if body.get(key)]
        wrong = [key for key in given if key in ("tcp", "udp") and key not in fitting]
        if given and not set(given) & set(fitting):
            wrong = given
        if wrong:
            words = f"{quoted(name)} does not travel by {' and '.join(wrong)}"
            expected = f"expected it with {' or '.join(fitting)} alone"
            self.document.add_problem((*path, "probe"), f"{words}, {expected}")

    def _check_denied(self, path: KeyPath, body: Body) -> None:
        """Nothing that must not answer can be asked to run, or to be held by the right process."""
        for key in ("existing", "process", "binds", "any_of", "quality", *_OF_CONNECTIONS):
            if body.get("expect") == "denied" and body.get(key):
                words = f"{quoted(key)} is about a service that must answer"
                expected = 'expected it without "expect: denied"'
                self.document.add_problem((*path, key), f"{words}, {expected}")

    def _check_connections(self, path: KeyPath, body: Body) -> None:
        """Only TCP has connections."""
        for key in _OF_CONNECTIONS:
            if body.get(key) and not body.get("tcp"):
                words = f"{quoted(key)} is about TCP connections, expected it with tcp"
                self.document.add_problem((*path, key), words)

    def _check_any_of(self, requirements: Iterable[tuple[KeyPath, Body]]) -> None:
        """A name that one requirement alone has: it is misspelt, or the other one is missing."""
        names: dict[str, object] = {one.id: one.any_of for one in self.base_requirements.values()}
        changes = self.document.items(("override",)).items()
        places: list[tuple[KeyPath, Body]] = [
            (("override", name), body) for name, body in changes if isinstance(body, dict)
        ]
        places += requirements
        for path, body in places:
            if "any_of" in body:
                names[str(body.get("id", path[-1]))] = body["any_of"]
        for path, body in places:
            name = body.get("any_of")
            if isinstance(name, str) and list(names.values()).count(name) == 1:
                words = f"no other requirement has any_of {quoted(name)}, expected two or more"
                self.document.add_problem((*path, "any_of"), words)

    def _check_claims(self) -> None:
        for name, value in self.document.items(("claims",)).items():
            setting = value.get("setting") if isinstance(value, dict) else None
            if isinstance(setting, str) and setting not in self.settings:
                words = unknown("setting", setting, self.settings)
                self.document.add_problem(("claims", name, "setting"), words)

    def _check_ids(self, items: list[tuple[KeyPath, object]]) -> dict[str, KeyPath]:
        """The ids of the file with their places; one that is there before becomes a problem."""
        first: dict[str, KeyPath] = {}
        for path, name in items:
            if not isinstance(name, str):
                continue
            if name in self.base_requirements:
                words = f"{quoted(name)} is a requirement of the extended matrix"
                expected = 'expected another id (or "override:" to change that one)'
                self.document.add_problem(path, f"{words}, {expected}")
            elif name in first:
                line, _ = self.document.mark_of(first[name])
                words = f"the id {quoted(name)} stands here a second time (first in line {line})"
                self.document.add_problem(path, f"{words}, expected every id once")
            first.setdefault(name, path)
        return first

    # Changes to the extended matrix

    def _check_overrides(self) -> None:
        if self.base is None and self.document.get(("override",)) is not None:
            words = '"override" changes an extended matrix, expected the key "extends" beside it'
            self.document.add_key_problem(("override",), words)
            return
        for name, body in self.document.items(("override",)).items():
            path = ("override", name)
            old = self.base_requirements.get(name)
            if old is None:
                words = unknown("requirement", name, self.base_requirements)
                self.document.add_key_problem(path, words)
            if isinstance(body, dict):
                self._check_requirement(path, body)
                kept = {key: getattr(old, key, None) for key in (*PROTOCOL_KEYS, "probe")}
                self._check_probe(path, {**kept, **body})
                self._check_denied(path, {"expect": getattr(old, "expect", None), **body})

    def _list_items(self, path: KeyPath) -> list[tuple[KeyPath, object]]:
        """List the items of a list with their places; nothing where it is no list."""
        raw = self.document.get(path)
        items = raw if isinstance(raw, list) else ()
        return [((*path, index), item) for index, item in enumerate(items)]


def _find_circle(start: str, implies: Mapping[str, Collection[str]]) -> list[str]:
    """Find the way from a role back to itself, or nothing."""
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


def _range_text(ports: PortRange) -> str:
    return str(ports[0]) if ports[0] == ports[1] else f"{ports[0]}-{ports[1]}"
