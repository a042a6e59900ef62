"""Ansible inventories of any form, as ``ansible-inventory --list`` prints them."""

from __future__ import annotations

import resource
import shlex
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from tempfile import TemporaryFile
from typing import IO, Any, Literal

from msgspec import Struct

from netprobe.errors import Problem, RequestError
from netprobe.load.inventory.addresses import parse_address, parse_ip
from netprobe.load.yaml.validation import check_name
from netprobe.load.yaml.wording import quoted
from netprobe.model.inventory import Address, Host, Inventory, Ssh, Vantage
from netprobe.model.json_text import MAX_CHARACTERS, WrongJson, parse_json
from netprobe.model.matrix import fold_role
from netprobe.model.printable import clean
from netprobe.model.shapes import LINE

TIMEOUT_S = 120
PROGRAM = "ansible-inventory"
_MAX_WORDS = 1000
# Groups that Ansible makes by itself, and its own key.
_NO_ROLES = {"_meta", "all", "ungrouped"}

# Groups of Kubespray's inventories, folded. Only there these variables are addresses, of which the
# first counts: the one that other hosts connect to, else the one that the host's services bind.
_KUBESPRAY = {"k8s-cluster", "kube-control-plane", "kube-master", "kube-node"}
_KUBESPRAY_ADDRESSES = ("access_ip", "ip")

AnsibleVars = Mapping[str, Any]  # Any: variables of Ansible are whatever their author wrote

_SSH_CONNECTIONS = ("ssh", "smart", "paramiko", "paramiko_ssh", "ansible.builtin.ssh")


def read_ansible(path: str, problems: list[Problem], handle: int | None = None) -> Inventory | None:
    """Ask Ansible itself. Problems have no line: it does not say where a variable comes from.

    Of a pipe ``handle`` is the descriptor of its content.
    """
    try:
        listing = _run_ansible_inventory(path, handle)
    except RequestError as error:
        problems.append(Problem(path, 0, 0, str(error)))
        return None
    before = len(problems)
    notes: list[str] = []
    roles = _groups_by_host(listing)
    hosts: list[Host] = []
    every = _as_mapping(_as_mapping(listing.get("_meta")).get("hostvars"))
    for name in _all_hosts(listing):
        if not LINE.fits(name):
            words = f"{quoted(name)} is no name of a host, expected {LINE.words}"
            problems.append(Problem(path, 0, 0, words))
            continue
        variables = _as_mapping(every.get(name))
        reader = _HostReader(path, name, variables, problems, notes, _is_kubespray(listing))
        host = reader.host(roles.get(name, ()))
        if host is not None:
            hosts.append(host)
    if not hosts and len(problems) == before:
        problems.append(Problem(path, 0, 0, "Ansible finds no host in it, expected at least one"))
    return None if len(problems) > before else Inventory(tuple(hosts), notes=tuple(notes))


def _run_ansible_inventory(path: str, handle: int | None) -> AnsibleVars:
    program = shutil.which(PROGRAM)
    if program is None:
        words = "this is no netprobe inventory, and for one of Ansible's"
        raise RequestError(f"{words} {PROGRAM} must be installed (ansible-core)")
    given = path if handle is None else f"/dev/fd/{handle}"
    command = [program, "-i", given, "--list"]
    status, printed, said = _run_program(command, () if handle is None else (handle,))
    if status != 0:
        raise RequestError(f"{PROGRAM} refuses it: {_last_words(said)}")
    try:
        listing = parse_json(printed)
    except WrongJson as error:
        words = "no JSON" if error.is_syntax else f"what {error}"
        raise RequestError(f"{PROGRAM} printed {words}: {_last_words(printed)}") from None
    if not isinstance(listing, dict):
        raise RequestError(f"{PROGRAM} printed no mapping, expected one of groups")
    # A file that no plugin could parse is only a warning for Ansible, and an empty inventory.
    if not _all_hosts(listing) and said.strip():
        raise RequestError(f"{PROGRAM} finds no host in it: {_last_words(said)}")
    return listing


def _run_program(command: Sequence[str], handles: Sequence[int]) -> tuple[int, bytes, bytes]:
    """Run a program; give its status, its output and its complaints. Raises RequestError.

    An inventory may be a program itself, and print without end: files take what comes, up to a
    limit that the kernel holds.
    """
    with TemporaryFile() as output, TemporaryFile() as complaints:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=complaints,
                pass_fds=handles,
                preexec_fn=_limit_files,
                timeout=TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RequestError(f"{PROGRAM} did not work: {error}") from None
        return done.returncode, _read_back(output), _read_back(complaints)


def _limit_files() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_CHARACTERS, MAX_CHARACTERS))


def _read_back(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _last_words(output: bytes) -> str:
    words = clean(output.decode(errors="replace")).split()
    return " ".join(words)[-_MAX_WORDS:] or "it said nothing"


def _all_hosts(listing: AnsibleVars) -> list[str]:
    """Give every host once, in the order in which the groups list them."""
    groups = [group for group in listing if group != "_meta"]
    return list(
        dict.fromkeys(host for group in groups for host in _names_in_group(listing, group, "hosts"))
    )


def _groups_by_host(listing: AnsibleVars) -> dict[str, tuple[str, ...]]:
    """Give the groups of every host: its own, and all groups that these are children of."""
    own: dict[str, list[str]] = {}
    parents: dict[str, list[str]] = {}
    for group in listing:
        for host in _names_in_group(listing, group, "hosts"):
            own.setdefault(host, []).append(group)
        for child in _names_in_group(listing, group, "children"):
            parents.setdefault(child, []).append(group)
    # Hosts of the same groups share one tuple: hosts and groups may be thousands.
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for groups in set(map(tuple, own.values())):
        above = _with_ancestors(groups, parents)
        found[groups] = tuple(group for group in listing if group in above)
    return {host: found[tuple(groups)] for host, groups in own.items()}


def _with_ancestors(groups: Iterable[str], parents: Mapping[str, list[str]]) -> set[str]:
    """Give these groups and all above them; "all" and "ungrouped" say nothing of a host."""
    found: set[str] = set()
    open_groups = list(groups)
    while open_groups:
        group = open_groups.pop()
        if group not in found:
            found.add(group)
            open_groups.extend(parents.get(group, ()))
    return found - _NO_ROLES


def _names_in_group(listing: AnsibleVars, group: str, key: str) -> list[str]:
    names = _as_mapping(listing.get(group)).get(key)
    return [str(name) for name in names] if isinstance(names, list) else []


def _is_kubespray(listing: AnsibleVars) -> bool:
    return not _KUBESPRAY.isdisjoint(map(fold_role, listing))


def _as_mapping(value: object) -> AnsibleVars:
    return value if isinstance(value, dict) else {}


class _HostReader(Struct, frozen=True):
    """Reads one host's variables; unusable ones become a problem or a note."""

    path: str
    name: str
    variables: AnsibleVars
    problems: list[Problem]
    notes: list[str]
    kubespray: bool = False

    def host(self, roles: tuple[str, ...]) -> Host | None:
        """Give the host, or None after a problem was noted."""
        target = str(self._first_variable("ansible_host", "ansible_ssh_host") or self.name)
        addresses = self._read_addresses(target)
        if not addresses:
            return None
        vantage, become = self._read_vantage(target), self._read_become()
        zone = self._read_zone()
        said = self._first_variable("ansible_connection") is not None
        return Host(self.name, addresses, roles, vantage, become, zone=zone, own_vantage=said)

    def _read_zone(self) -> str | None:
        zone = self.variables.get("netprobe_zone")
        if zone is None:
            return None
        try:
            return check_name(str(zone))
        except ValueError as error:
            self._add_problem(f"netprobe_zone {error}")
            return None

    def _read_addresses(self, target: str) -> tuple[Address, ...]:
        usual = self._read_kubespray() or target
        raw = self.variables.get("netprobe_addresses", usual)
        found: list[Address] = []
        for item in raw if isinstance(raw, list) else [raw]:
            if "{{" in str(item):
                self._add_problem(f"the address {quoted(item)} is a template, expected its value")
                continue
            try:
                found.append(parse_address(item))
            except ValueError as error:
                self._add_problem(f"the address {error}")
        return tuple(found)

    def _read_kubespray(self) -> str | None:
        """Give the address that Kubespray has the other hosts connect to, where it is said."""
        given = self._first_variable(*_KUBESPRAY_ADDRESSES) if self.kubespray else None
        if given is None:
            return None
        try:
            return parse_ip(given).text
        except ValueError as error:
            words = f"of Kubespray's variables {error}; its address is the one that ssh takes"
            self.notes.append(f"host {self.name}: {words}")
            return None

    def _read_vantage(self, target: str) -> Vantage:
        connection = str(self._first_variable("ansible_connection") or "ssh")
        if connection in ("local", "ansible.builtin.local"):
            return Vantage("local")
        if connection not in _SSH_CONNECTIONS:
            words = f"connection {quoted(connection)} is not one that netprobe uses"
            self.notes.append(f"host {self.name}: {words}, it is only a destination")
            return Vantage("none")
        if self._first_variable("ansible_password", "ansible_ssh_pass", "ansible_ssh_password"):
            words = "the ssh password is not used, ssh must get in with a key or an agent"
            self.notes.append(f"host {self.name}: {words}")
        return Vantage("ssh", ssh=self._read_ssh(target))

    def _read_ssh(self, target: str) -> Ssh:
        user = self._first_variable("ansible_user", "ansible_ssh_user")
        for word in (target, str(user or "")):
            # A leading "-" would be an option of ssh, and options can run commands.
            if word.startswith("-") or any(letter.isspace() for letter in word):
                self._add_problem(
                    f"{quoted(word)} does not fit, expected a word without - before it"
                )
        return Ssh(
            target, str(user) if user else None, self._read_port(), tuple(self._read_options())
        )

    def _read_port(self) -> int | None:
        port = self._first_variable("ansible_port", "ansible_ssh_port")
        if port is None:
            return None
        text = str(port)
        if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:6]) <= 65535:
            self._add_problem(f"the ssh port {quoted(text)} is none, expected 1 to 65535")
            return None
        return int(text)

    def _read_options(self) -> Iterator[str]:
        key = self._first_variable("ansible_ssh_private_key_file", "ansible_private_key_file")
        if key:
            yield from ("-i", str(key))
        for name in ("ansible_ssh_common_args", "ansible_ssh_extra_args"):
            try:
                yield from shlex.split(str(self.variables.get(name) or ""))
            except ValueError as error:
                self._add_problem(f"{name} does not parse ({error}), expected words as in a shell")

    def _read_become(self) -> Literal["sudo"] | None:
        wanted = str(self._first_variable("ansible_become")).lower() in ("true", "yes", "1", "on")
        method = str(self._first_variable("ansible_become_method") or "sudo")
        if wanted and method not in ("sudo", "ansible.builtin.sudo"):
            words = f"become method {quoted(method)} is not used, netprobe knows only sudo"
            self.notes.append(f"host {self.name}: {words}")
            return None
        return "sudo" if wanted else None

    def _first_variable(self, *names: str) -> object:
        return next((value for name in names if (value := self.variables.get(name))), None)

    def _add_problem(self, words: str) -> None:
        self.problems.append(Problem(self.path, 0, 0, f"host {self.name}: {words}"))
