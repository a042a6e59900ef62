"""The inventory that ``netprobe init --matrix NAME`` prints for the user to edit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from netprobe.load.inventory.suspects import NETWORK, placeholder_name
from netprobe.load.matrix.bundled import bundled_names
from netprobe.model.matrix import (
    CLAIMS_NOTHING,
    Matrix,
    Role,
    Setting,
    SettingRef,
    SettingValue,
    fold_role,
)
from netprobe.model.printable import clean, word_command, yaml_scalar

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
  # Nodes of a cluster without ssh, through a pod, which kubectl leaves there at the end:
  # {{command: [oc, debug, node/w0, -T, -q, --, chroot, /host]}}
  # {{command: [kubectl, debug, node/w0, -iq, --profile=sysadmin, --image=IMG, --, chroot, /host]}}
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
    # `run` refuses the addresses that stand here: write your own, and delete what you do not have.
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
    # proxy: {{https_proxy: "http://10.0.0.1:3128", no_proxy: [10.0.0.0/8]}}
"""

# Words in names of roles that are rarely machines to log in to, as the bundled matrices use them.
_OUTSIDE = {"external", "dns", "ntp", "vip", "api", "registry", "proxy", "router", "client"}


def starter_inventory(matrices: Sequence[Matrix]) -> str:
    """A commented inventory that loads and plans as it is: a host for each role, all settings."""
    return "".join(_write_parts(matrices))


def _write_parts(matrices: Sequence[Matrix]) -> Iterator[str]:
    # Every setting once, as the first matrix that has it describes it.
    settings: dict[str, Matrix] = {}
    for matrix in matrices:
        for name in matrix.settings:
            settings.setdefault(name, matrix)
    roles = _list_roles(matrices)
    yield _write_head(matrices)
    if settings:
        yield _SETTINGS
    for name, matrix in settings.items():
        yield _write_setting(matrix, matrix.settings[name], matrices)
    names = " and ".join(matrix.name for matrix in matrices)
    yield f"\n# Roles of {names}; a role may have no host, a host may have several roles:\n"
    yield from map(_write_role, roles.values())
    yield "hosts:\n"
    sources = {name for matrix in matrices for one in matrix.requirements for name in one.sources}
    for number, name in enumerate(roles, 1):
        yield _write_host(roles[name], number, name in sources)
        if number == 1:
            yield _HOST_NOTE.format(roles=", ".join([*roles][:2]))


def _list_roles(matrices: Sequence[Matrix]) -> dict[str, Role]:
    """List every role once, as the first matrix that has it describes it.

    A host of the platform plays the part of a layer, by the word that both have for it; that it is
    a node follows from what it is there.
    """
    roles: dict[str, Role] = {}
    for matrix in matrices:
        meant = matrix.role_words()
        known = {meant.get(fold_role(name)) for name in roles}
        if roles and matrix.layer:
            known |= {role.name for role in matrix.roles.values() if role.common == "node"}
        roles |= {name: role for name, role in matrix.roles.items() if name not in known}
    return roles


def _write_head(matrices: Sequence[Matrix]) -> str:
    titles = "".join(f"#   {matrix.name}: {clean(matrix.title)}\n" for matrix in matrices)
    bundled = bundled_names()
    names = (matrix.name if matrix.name in bundled else "FILE" for matrix in matrices)
    options = word_command(word for name in names for word in ("--matrix", name))
    return _HEAD.format(what=titles, options=options)


def _write_setting(matrix: Matrix, setting: Setting, matrices: Sequence[Matrix]) -> str:
    lines = [f"  # {clean(setting.description)}"] if setting.description else []
    if setting.values:
        several = "any of" if setting.type == "list" else "one of"
        lines.append(f"  # {several}: {', '.join(setting.values)}")
    elif setting.type == "boolean":
        lines.append("  # true or false")
    elif setting.type != "string":
        lines.append(f"  # a {setting.type}")
    if isinstance(setting.default, SettingRef):
        # Written out it would not follow the other one, when that is edited.
        lines.append(f"  # {setting.name}:   # without it: as {setting.default.setting}")
        return "".join(f"{line}\n" for line in lines)
    layer = _find_layer_instead(matrix, setting, matrices)
    if layer is not None:
        lines.append(f"  # {layer.name} has it")
        lines.append(f"  {setting.name}: {_free_value(setting)}")
        return "".join(f"{line}\n" for line in lines)
    line = f"{setting.name}: {_value_text(setting.default)}"
    others = (one.settings.get(setting.name, setting) for one in matrices)
    if all(replace(one, description=setting.description) == setting for one in others):
        lines.append(f"  {line}")
    else:
        hint = "--set MATRIX:KEY=VALUE says it to one of them"
        lines.append(f"  # The matrices differ in it: {hint}.")
        lines.append(f"  # {line}   # as in {matrix.name}")
    return "".join(f"{line}\n" for line in lines)


def _find_layer_instead(
    matrix: Matrix, setting: Setting, matrices: Sequence[Matrix]
) -> Matrix | None:
    """Find a layer that brings what the setting can leave to it."""
    words = [
        word
        for word, claim in matrix.claims.items()
        if isinstance(claim, SettingRef) and claim.setting == setting.name
    ]
    layers = (one for one in matrices if one.layer and one is not matrix)
    if not words or _free_value(setting) is None:
        return None
    return next((one for one in layers if any(word in one.claims for word in words)), None)


def _free_value(setting: Setting) -> str | None:
    return next((value for value in setting.values if value in CLAIMS_NOTHING), None)


def _value_text(value: SettingValue) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(yaml_scalar, value))}]"
    return yaml_scalar(value)


def _write_role(role: Role) -> str:
    implied = f" Is also: {', '.join(role.implies)}." if role.implies else ""
    return f"#   {role.name}: {clean(role.description)}{implied}".rstrip() + "\n"


def _write_host(role: Role, number: int, sends: bool) -> str:
    name, address = placeholder_name(role.name), NETWORK[number]
    lines = [f"  {name}:", f"    address: {address}", f"    roles: [{role.name}]"]
    if role.vantage == "none":
        lines.append("    # nothing can run there (vantage: none), unless you give it a vantage")
    elif _OUTSIDE & set(role.name.split("-")):
        here = "    # vantage: local   # if this machine is it; none if no probe can start there"
        lines.append(here if sends else "    vantage: none")
    return "".join(f"{line}\n" for line in lines)
