"""The inventory that ``netprobe init --matrix NAME`` prints for the user to edit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netprobe.load.matrix.bundled import bundled_names
from netprobe.model.matrix import Matrix, Role, Setting, SettingValue
from netprobe.model.yaml_scalar import yaml_scalar

_HEAD = """\
# Inventory for netprobe, made for
{what}# Replace the hosts by yours, then see what would be sent, and send it:
#   netprobe plan {options} -i inventory.yaml
#   netprobe run {options} -i inventory.yaml
schema: netprobe.inventory/1

defaults:
  # How to start probes on a host:
  #   ssh      your own OpenSSH: ~/.ssh/config, ProxyJump, agent and known_hosts all apply
  #   local    this machine
  #   none     no probe starts there, it is only a destination (a virtual IP, a load balancer)
  #   {{command: [docker, exec, -i, NAME]}}   any words that start a program there
  vantage: ssh
  # Root on the hosts makes the answers sharper (raw sockets, ports below 1024, names of port
  # owners). With sudo that asks for a password: --ask-become-pass. Without sudo: none.
  become: sudo
  # The same for every host, where ~/.ssh/config does not say it:
  # ssh: {{user: admin, port: 22, options: ["-o", "ProxyJump=bastion.example.com"]}}
"""

_SETTINGS = """
# What netprobe should know of the installation. These are the defaults.
settings:
"""

_HOST_NOTE = """\
    # Everything that a host may say:
    # addresses: [10.0.0.10, "fd00::10"]     # instead of address, where it has several
    # roles: [{roles}]
    # ssh:
    #   host: 192.0.2.10                     # where ssh connects to; without it: the address
    #   user: admin
    #   port: 22
    #   options: ["-o", "ProxyJump=bastion.example.com"]
    # vantage: ssh                           # or local, none, {{command: [WORD, ...]}}
    # become: none
    # source_addresses: [10.0.0.10]          # probe from this address, one a family
"""

# Documentation addresses (RFC 5737), so that an inventory sent off unedited reaches nobody.
_NETWORK = "192.0.2"
# Words in names of roles that are rarely machines to log in to, as the bundled matrices use them.
_OUTSIDE = {"external", "dns", "ntp", "vip", "api", "registry", "proxy", "router", "client"}


def starter_inventory(matrices: Matrix | Sequence[Matrix]) -> str:
    """A commented inventory that loads and plans as it is: a host for each role, all settings."""
    return "".join(_parts([matrices] if isinstance(matrices, Matrix) else matrices))


def _parts(matrices: Sequence[Matrix]) -> Iterator[str]:
    names = " and ".join(matrix.name for matrix in matrices)
    options = " ".join(f"--matrix {_argument(matrix)}" for matrix in matrices)
    yield _HEAD.format(what=_titles(matrices), options=options)
    if any(matrix.settings for matrix in matrices):
        yield _SETTINGS
    for matrix, setting in _settings(matrices):
        yield _setting(matrix, setting, matrices)
    yield f"\n# Roles of {names}; a role may have no host, a host may have several roles:\n"
    for role in _roles(matrices):
        yield _role(role)
    yield "hosts:\n"
    for number, role in enumerate(_roles(matrices), 1):
        yield _host(role, number, any(_sends(matrix, role) for matrix in matrices))
        if number == 1:
            yield _HOST_NOTE.format(roles=", ".join(role.name for role in _roles(matrices)[:2]))


def _argument(matrix: Matrix) -> str:
    return matrix.name if matrix.name in bundled_names() else "FILE"


def _titles(matrices: Sequence[Matrix]) -> str:
    return "".join(f"#   {matrix.name}: {matrix.title}\n" for matrix in matrices)


def _roles(matrices: Sequence[Matrix]) -> list[Role]:
    """Every role once, as the first matrix that has it describes it."""
    roles: dict[str, Role] = {}
    for role in (role for matrix in matrices for role in matrix.roles.values()):
        roles.setdefault(role.name, role)
    return list(roles.values())


def _settings(matrices: Sequence[Matrix]) -> Iterator[tuple[Matrix, Setting]]:
    """Every setting once, with the first matrix that has it."""
    seen: set[str] = set()
    for matrix in matrices:
        for setting in matrix.settings.values():
            if setting.name not in seen:
                seen.add(setting.name)
                yield matrix, setting


def _setting(matrix: Matrix, setting: Setting, matrices: Sequence[Matrix]) -> str:
    lines = [f"  # {setting.description}"] if setting.description else []
    if setting.values:
        several = "any of" if setting.type == "list" else "one of"
        lines.append(f"  # {several}: {', '.join(setting.values)}")
    elif setting.type == "boolean":
        lines.append("  # true or false")
    elif setting.type != "string":
        lines.append(f"  # a {setting.type}")
    others = [one.settings.get(setting.name, setting) for one in matrices]
    if all(_shape(one) == _shape(setting) for one in others):
        lines.append(f"  {setting.name}: {_value(setting.default)}")
    else:
        lines.append(
            "  # The matrices differ in it: --set MATRIX:KEY=VALUE says it to one of them."
        )
        lines.append(f"  # {setting.name}: {_value(setting.default)}   # as in {matrix.name}")
    return "".join(f"{line}\n" for line in lines)


def _shape(setting: Setting) -> tuple[object, ...]:
    return (setting.type, setting.values, setting.default)


def _value(value: SettingValue) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(yaml_scalar, value))}]"
    return yaml_scalar(value)


def _role(role: Role) -> str:
    implied = f" Is also: {', '.join(role.implies)}." if role.implies else ""
    return f"#   {role.name}: {role.description}{implied}".rstrip() + "\n"


def _sends(matrix: Matrix, role: Role) -> bool:
    return any(role.name in requirement.sources for requirement in matrix.requirements)


def _host(role: Role, number: int, sends: bool) -> str:
    lines = [f"  {role.name}-0:", f"    address: {_NETWORK}.{number}", f"    roles: [{role.name}]"]
    if _OUTSIDE & set(role.name.split("-")):
        here = "    # vantage: local   # if this machine is it; none if no probe can start there"
        lines.append(here if sends else "    vantage: none")
    return "".join(f"{line}\n" for line in lines)
