"""The keys of an inventory file, for pydantic."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema

from netprobe.load.inventory.addresses import parse_address, parse_ip
from netprobe.load.yaml.scalars import text_of
from netprobe.load.yaml.validation import FileModel, NameField, NameList, Value, check_name, fit
from netprobe.load.yaml.wording import quoted, what_it_is


def _check_argument(raw: object) -> str:
    """Check a word of a command line; numbers are taken as they are written."""
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        raw = text_of(raw)
    if not isinstance(raw, str):
        raise ValueError(f"{what_it_is(raw)}, expected one word of the command in quotes")
    return raw


def _check_port(port: int) -> int:
    if not 1 <= port <= 65535:
        raise ValueError(f"{port} is no port, expected 1 to 65535")
    return port


def _check_router_id(number: int) -> int:
    if not 1 <= number <= 255:
        raise ValueError(f"{number} is no id of a virtual router, expected 1 to 255")
    return number


def split_ssh(value: object) -> object:
    """``user@host:port`` as a mapping."""
    if not isinstance(value, str):
        return value
    user, _, rest = value.rpartition("@")
    found: dict[str, object] = {"user": user} if user else {}
    if rest.startswith("[") and "]" in rest:
        host, _, tail = rest[1:].partition("]")
        port = tail.removeprefix(":")
    else:
        host, _, port = rest.partition(":") if rest.count(":") == 1 else (rest, "", "")
    found["host"] = host
    if port:
        found["port"] = int(port) if port.isascii() and port.isdigit() and len(port) < 9 else port
    return found


def _one_vantage(value: object) -> object:
    if isinstance(value, dict):
        if set(value) != {"command"}:
            raise ValueError("this mapping is no vantage, expected {command: [WORD, ...]}")
        return value
    if value in ("ssh", "local", "none") and isinstance(value, str):
        return {"kind": value}
    what = quoted(value) + " is no vantage" if isinstance(value, str) else what_it_is(value)
    raise ValueError(f"{what}, expected ssh, local, none or {{command: [WORD, ...]}}")


def _check_become(value: object) -> str:
    if value is False or value in ("none", "sudo"):
        return "none" if value is False else str(value)
    what = f"{quoted(value)} is not known" if isinstance(value, str) else what_it_is(value)
    raise ValueError(f"{what}, expected sudo or none")


def _check_url(text: str) -> str:
    # The text may hold a password: it never stands in a problem.
    try:
        parts = urlsplit(text)
        fine = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        fine = False
    if not fine:
        raise ValueError("this is no proxy URL, expected one such as http://proxy.example.com:3128")
    return text


def _split_commas(value: object) -> object:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


_ADDRESS = WithJsonSchema({"type": "string", "minLength": 1})
_ARGUMENT = WithJsonSchema({"type": ["string", "number"]})
_COMMAND_SCHEMA: dict[str, Any] = {
    "type": "array",
    "items": {"type": ["string", "number"]},
    "minItems": 1,
    "description": "The words before the Python that netprobe starts.",
}
_VANTAGE_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"enum": ["ssh", "local", "none"]},
        {
            "type": "object",
            "properties": {"command": _COMMAND_SCHEMA},
            "required": ["command"],
            "additionalProperties": False,
        },
    ]
}

# Any: the validators take whatever stands in the file.
HostAddress = Annotated[Any, PlainValidator(parse_address), _ADDRESS]
IpAddress = Annotated[Any, PlainValidator(parse_ip), _ADDRESS]
Argument = Annotated[Any, PlainValidator(_check_argument), _ARGUMENT]
# A leading "-" would be an option of ssh, and options can run commands.
SshWord = Annotated[
    str,
    fit(
        re.compile(r"(?!-)\S+").fullmatch,
        "does not fit, expected a word that does not begin with -",
    ),
]
Url = Annotated[str, AfterValidator(_check_url)]
Become = Annotated[
    Any, PlainValidator(_check_become), WithJsonSchema({"enum": ["sudo", "none", False]})
]


class VantageFile(FileModel):
    """Where a probe starts: a command, or one of the words ssh, local and none as ``kind``."""

    kind: Literal["ssh", "local", "none"] | None = None
    command: list[Argument] | None = None


def _check_command(vantage: VantageFile) -> VantageFile:
    if vantage.command is not None and not any(vantage.command):
        raise ValueError(
            "the command is empty, expected its words such as [docker, exec, -i, node-1]"
        )
    return vantage


VantageField = Annotated[
    VantageFile,
    BeforeValidator(_one_vantage),
    AfterValidator(_check_command),
    WithJsonSchema(_VANTAGE_SCHEMA),
]


class SshDefaultsFile(FileModel):
    """Settings of OpenSSH for every host; the user's own ssh configuration has all others."""

    user: SshWord | None = Field(default=None, description="User to log in as.")
    port: Annotated[int, AfterValidator(_check_port)] | None = Field(
        default=None, description="Port of the ssh server."
    )
    options: list[Argument] = Field(
        default=[], description='Further arguments of ssh, such as ["-o", "ProxyJump=bastion"].'
    )


class SshFile(SshDefaultsFile):
    """How OpenSSH reaches a host."""

    host: SshWord | None = Field(
        default=None,
        description="Name or address that ssh connects to (default: the first address).",
    )


SshField = Annotated[SshFile, BeforeValidator(split_ssh, json_schema_input_type=str | SshFile)]


class ProxyFile(FileModel):
    """The proxy settings of the host's software."""

    https_proxy: Url | None = Field(default=None, description="URL of the proxy for HTTPS.")
    http_proxy: Url | None = Field(default=None, description="URL of the proxy for HTTP.")
    no_proxy: Annotated[
        list[str], BeforeValidator(_split_commas, json_schema_input_type=str | list[str])
    ] = Field(
        default=[], description="Hosts, domains and networks that are reached without the proxy."
    )


class DefaultsFile(FileModel):
    """Defaults for every host."""

    vantage: VantageField | None = Field(
        default=None, description="Where probes start: `ssh`, `local`, `none`, or a command."
    )
    become: Become | None = Field(default=None, description="How to become root: sudo or none.")
    ssh: SshDefaultsFile | None = Field(
        default=None, description="`user`, `port` and `options` of ssh."
    )
    proxy: ProxyFile | None = Field(default=None, description="The hosts' proxy.")


def _check_path(text: str) -> str:
    if not re.fullmatch(r"/[!-~]{0,200}", text):
        raise ValueError(f"{quoted(text)} is no path, expected one such as /readyz")
    return text


def _check_port_word(text: str) -> str:
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0
    if not 1 <= number <= 65535:
        raise ValueError(f"{quoted(text)} is no port, expected 1 to 65535")
    return text


def _read_check(value: object) -> object:
    """``tcp`` as a mapping."""
    if value == "tcp":
        return {"tcp": True}
    if isinstance(value, dict) and len({"https", "http"} & {*value}) == 1 and "tcp" not in value:
        return value
    what = f"{quoted(value)} is no health check" if isinstance(value, str) else what_it_is(value)
    raise ValueError(f"{what}, expected tcp, {{https: PATH}} or {{http: PATH}}")


def _read_health(value: object) -> object:
    """A path as a mapping, which says it of all ports."""
    if isinstance(value, str):
        return {"path": value}
    if isinstance(value, dict) and value:
        return {"ports": value}
    raise ValueError(f"{what_it_is(value)}, expected a path or {{PORT: {{https: PATH}}}}")


_CHECK_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"const": "tcp"},
        {
            "type": "object",
            "properties": {
                **{key: {"type": "string", "pattern": "^/"} for key in ("https", "http")},
                "port": {"type": "integer", "minimum": 1, "maximum": 65535},
            },
            "additionalProperties": False,
        },
    ]
}
_HEALTH_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "pattern": "^/"},
        {
            "type": "object",
            "patternProperties": {"^[0-9]+$": _CHECK_SCHEMA},
            "additionalProperties": False,
            "minProperties": 1,
        },
    ]
}
PathField = Annotated[str, AfterValidator(_check_path)]


class CheckFile(FileModel):
    """What a balancer asks the back ends of one port."""

    tcp: bool = False
    https: PathField | None = None
    http: PathField | None = None
    port: Annotated[int, AfterValidator(_check_port)] | None = None


class HealthFile(FileModel):
    """What a balancer asks: a path for all ports, or a check for each."""

    path: PathField | None = None
    ports: dict[
        Annotated[str, AfterValidator(_check_port_word)],
        Annotated[CheckFile, BeforeValidator(_read_check)],
    ] = Field(default={})


HealthField = Annotated[HealthFile, BeforeValidator(_read_health), WithJsonSchema(_HEALTH_SCHEMA)]


class HostFile(FileModel):
    """One machine."""

    EXAMPLE = "{address: 10.0.0.10, roles: [node]}"

    address: HostAddress | None = Field(
        default=None,
        description="IPv4 address, IPv6 address, or name (which the source of each flow resolves), "
        "at which the other hosts reach it. `127.0.0.1` or `localhost` only where every"
        " agent runs on this machine. This key or `addresses` must be there.",
    )
    addresses: list[HostAddress] = Field(
        default=[],
        description="A list of such addresses, where the host has more than one. IPv6 in a list "
        "stands in quotes.",
    )
    roles: NameList = Field(
        description="What the host is for: roles of the matrix. A host none of whose roles is known"
        " to a chosen matrix is an error; a further unknown role is a note."
    )
    vantage: VantageField | None = Field(
        default=None,
        description="Where its probes start: `ssh` (default), `local`, `none`, or `{command: [WORD,"
        " ...]}`.",
    )
    ssh: SshField | None = Field(
        default=None,
        description="How ssh gets there: `host` (default: the first address), `user`, `port`, "
        "`options` (arguments of ssh), or the short form `user@host:port`.",
    )
    become: Become | None = Field(
        default=None,
        description="`sudo` or `none` (default). With sudo there are raw sockets, ports below 1024,"
        " and the names of port owners.",
    )
    source_addresses: list[IpAddress] = Field(
        default=[],
        description="Addresses that its probes start from, at most one a family, where the host has"
        " several networks.",
    )
    proxy: ProxyFile | None = Field(
        default=None,
        description="The proxy of the host's own software: `https_proxy`, `http_proxy`, `no_proxy` "
        "(a list, or a text with commas).",
    )
    zone: NameField | None = Field(
        default=None,
        description="The name of its zone: hosts that firewalls are supposed to treat alike. "
        "Reports group by it.",
    )
    balances: NameList = Field(
        default=[],
        description="Of a load balancer: roles of the hosts that stand behind it, for "
        "`--rehearse=balancer`. `roles` may be an empty list then.",
    )
    health: HealthField | None = Field(
        default=None,
        description="What the balancer asks its back ends: a path over HTTPS, such as `/readyz`, "
        "for all of its ports, or for each port `{https: PATH}`, `{http: PATH}` or `tcp` (a "
        "connection alone), with `port:` where it asks another port. Ports that are named are the "
        "only ones that are rehearsed.",
    )
    free: bool = Field(
        default=False,
        description="`true`: nobody has its addresses yet, such as a virtual one before the "
        "installation. Rows to it are not probed (unless it `balances`), and "
        "`--rehearse=segment` finds who has them.",
    )
    vrid: Annotated[int, AfterValidator(_check_router_id)] | None = Field(
        default=None,
        description="Of a `free` host: the id that its virtual router will have (VRRP, CARP), 1 to "
        "255. `--rehearse=segment` finds who has it.",
    )


class InventoryFile(FileModel):
    """An inventory: which machines there are, what they are for, and how to get onto them."""

    schema_: Literal["netprobe.inventory/1"] = Field(
        alias="schema", description="The format of this file: netprobe.inventory/1."
    )
    defaults: DefaultsFile = Field(
        default=DefaultsFile(),
        description="`vantage`, `become`, `ssh` (`user`, `port`, `options`) and `proxy` for every "
        "host that does not say otherwise.",
    )
    settings: dict[NameField, Value] = Field(
        default={},
        description="Values of the matrices' settings. One that no chosen matrix knows is a note. "
        "Manifests and `--set` win over them.",
    )
    roles_map: dict[NameField, NameList] = Field(
        default={},
        description="`ROLE: ROLE` or `ROLE: [ROLE, ...]`: what the roles (groups, for Ansible) of "
        "this inventory stand for in the matrices. An empty list: nothing.",
    )
    dhcp: Literal["none"] | None = Field(
        default=None,
        description="`none`: no DHCP server should answer on the networks of these hosts. "
        "`--rehearse=segment` finds those that do; without the key it only tells of them.",
    )
    hosts: dict[Annotated[str, AfterValidator(check_name)], HostFile] = Field(
        description="The machines, by their names. There is at least one."
    )
