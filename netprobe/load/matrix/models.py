"""The keys of a matrix file, for pydantic: shapes and types. checks.py knows the names."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from netprobe.load.matrix.fields import (
    ClaimField,
    Commit,
    ConditionField,
    Date,
    FilledText,
    Hash,
    MulticastGroup,
    PortField,
    Processes,
    ProtocolsField,
    ServerName,
    split_stops,
    split_waiver,
)
from netprobe.load.matrix.probe_models import ProbeField
from netprobe.load.matrix.quality_models import QualityFile
from netprobe.load.matrix.time_fields import KeepaliveField
from netprobe.load.yaml.validation import DefaultValue, FileModel, NameField, NameList, Value
from netprobe.model.matrix import Binds, CommonPart, Persistence, Weight


class SourceFile(FileModel):
    """A file of the document, where it is kept under version control."""

    repository: FilledText = Field(description="The repository that has the file: OWNER/NAME.")
    path: FilledText = Field(description="The path of the file in the repository.")
    commit: Commit = Field(description="The commit at which the file was read.")
    hash: Hash | None = Field(
        default=None, description="The hash of the cells of its tables, as the parser gives it."
    )
    note: FilledText | None = Field(
        default=None,
        description="What else to know of the file, such as that it is an old edition.",
    )


class DocumentFile(FileModel):
    """The document that the rows of a matrix come from."""

    title: str | None = Field(default=None, description="Title of the document.")
    publisher: str | None = Field(default=None, description="Who publishes the document.")
    retrieved: Date | None = Field(
        default=None, description="The day on which the document was read."
    )
    url: str | None = Field(default=None, description="Where the document was found.")
    version: str | None = Field(
        default=None, description="Version of the document or of the product."
    )
    sources: list[SourceFile] = Field(
        default=[], description="The files of the document, each at a commit of its repository."
    )


class RoleFile(FileModel):
    """A part that hosts play."""

    EXAMPLE = "{description: A worker node}"

    description: str = Field(default="", description="What such a host is.")
    implies: NameList = Field(
        default=[], description="Further roles that such a host has too; transitive."
    )
    existing: bool = Field(
        default=False,
        description="`true`: what listens there runs before the installation (DNS, NTP, a load "
        "balancer ...), see the key of requirements.",
    )
    aliases: NameList = Field(
        default=[],
        description="Names that inventories of other tools give the role (`kube_node`); `_` and `-`"
        " are the same in names of roles.",
    )
    common: CommonPart | None = Field(
        default=None,
        description="`control-plane`, `worker` or `node`: the part that the role is in every "
        "platform; what inventories of many tools call it (masters, k8s_cluster) means "
        "the role.",
    )
    vantage: Literal["none"] | None = Field(
        default=None,
        description="`none`: nothing can run there (a BMC). A host with this role that has no "
        "`vantage` of its own in the inventory is `vantage: none`: flows that start "
        "there are skipped, and a request before a run asks for them.",
    )


class SettingFile(FileModel):
    """Something that the user says of the installation; conditions and ports refer to it."""

    type: Literal["choice", "list", "version", "port", "string", "boolean", "bool"] | None = Field(
        default=None,
        description="Type of the value. Values alone make it a choice, true or false a boolean.",
    )
    values: list[Value] | None = Field(
        default=None, description="The values that a choice, or the items that a list, may have."
    )
    default: DefaultValue = Field(
        default=None,
        description="The value where the user says nothing; {setting: NAME}: as that setting.",
    )
    description: str = Field(default="", description="What the setting means.")
    resolves_to: NameList = Field(
        default=[],
        description="The value is a name that name servers are asked for (rows with probe: dns): "
        "the roles whose addresses it has; []: any addresses.",
    )


class WarnFile(FileModel):
    """A sentence that results carry while a condition holds; it never changes a verdict."""

    text: FilledText = Field(description="The sentence.")
    when: ConditionField = Field(
        default={}, description="Settings and values under which it is shown."
    )


class StopsFile(FileModel):
    """What ``split_stops`` makes of a word, or of a word and its reason."""

    weight: Weight
    reason: str = ""


StopsField = Annotated[
    StopsFile,
    BeforeValidator(split_stops, json_schema_input_type=Weight | dict[Weight, FilledText]),
]


class ChangeFile(FileModel):
    """The keys of a requirement that ``override`` may change."""

    sources: NameList = Field(
        default=[], alias="from", description="The role, or the roles, that must reach the others."
    )
    destinations: NameList = Field(
        default=[], alias="to", description="The role, or the roles, to reach."
    )
    tcp: list[PortField] = Field(
        default=[],
        description='TCP ports: numbers (1 to 65535), `"FIRST-LAST"`, or `{setting: NAME}` for the '
        "value of a setting of type port. No port may stand in a list twice.",
    )
    udp: list[PortField] = Field(default=[], description="UDP ports, as for `tcp`.")
    family: Literal["ipv4", "ipv6"] | None = Field(
        default=None,
        description="`ipv4` or `ipv6`: only addresses of this family must reach each other (IPIP, "
        "or WireGuard's port for IPv6). Without the key there is a flow for each family"
        " that both ends have. Of a destination that is given by name, a source probes "
        "the addresses of this family; where the name has none, the row is "
        "`not-tested`, `other-family`.",
    )
    icmp: Literal["echo"] | None = Field(default=None, description="`echo`, the only kind.")
    ipproto: ProtocolsField = Field(
        default=[],
        description="Number, or list of numbers, of a raw IP protocol, such as 4 for IPIP (1 to "
        "254, each once). TCP, UDP and ICMP have keys of their own.",
    )
    purpose: str = Field(
        default="",
        description="What the flow is for, in the document's own words; reports show it.",
    )
    row: str = Field(
        default="",
        description="The table of the document in which the row stands; reports show it.",
    )
    when: ConditionField = Field(
        default={}, description="Required only while all these settings match."
    )
    unless: ConditionField = Field(
        default={}, description="Not required while all these settings match."
    )
    optional: bool = Field(
        default=False, description="`true`: reported, but never decides the exit status."
    )
    stops: StopsField | None = Field(
        default=None,
        description="What does not work while the row fails: `installation`, `nodes` (that they "
        "join, or stay), `pods` (and what they reach), `feature` (one of the platform) "
        "or `monitoring`. Where the document does not say it, with the reason: `{nodes:"
        " nodes get their packages there}`. Findings are ordered by it, and a summary "
        "says by it whether the installation can start.",
    )
    expect: Literal["allowed", "denied"] = Field(
        default="allowed", description="`allowed` (default), or `denied`: it must not answer."
    )
    probe: ProbeField | None = Field(
        default=None,
        description="What to send where plain bytes prove little: a name, or a request of your own,"
        " `{http: {...}}`. It must travel by the `tcp` or `udp` that stands beside it.",
    )
    sni: ServerName | None = Field(
        default=None,
        description="The name that TLS asks for, where several services share an address: a name, "
        "or `{setting: NAME}` for the value of a setting of type string. Without it a "
        "destination that is given by name is asked for under that name, one given by "
        "address without any. If the setting is empty and the destination an address, "
        "the port is only connected to, and a warning says which setting is missing.",
    )
    existing: bool | None = Field(
        default=None,
        description="`true`: the service runs before the installation. No listener of netprobe "
        "stands in for it, and a refusal, which otherwise passes, is `blocked`, "
        "`[service]`, `nothing-listens`. `false`: it need not run yet, whatever the "
        "role to reach says. Without the key the roles to reach decide, for each host.",
    )
    process: Processes = Field(
        default=[],
        description="A program, or a list of programs, that may hold the port before the "
        "installation: base names of program files (`sshd`), or the kernel's names of "
        "processes; `kernel` for the kernel itself (VXLAN, WireGuard). A port that any "
        "other holds is `blocked`, `[service]`, `port-taken`, unless it answers as the "
        "service that `probe` names, or a kubelet runs there already.",
    )
    owner: Processes = Field(
        default=[],
        description="A program, or a list of programs, that hold the port once the platform runs; "
        '`*` stands for any text (`"ovnkube*"`), `_` is `-`. Only the audit of '
        "listening ports asks for it, and it allows those of `process` too.",
    )
    binds: Binds | None = Field(
        default=None,
        description="The addresses of its host that the row's program listens on: `all`, or "
        "`address` (one alone). Before the installation a process that holds the port "
        "on loopback (or on another address of the host) is in the way of a program "
        "that wants all: `blocked`, `[service]`, `port-taken`, although the way is "
        "open. With `address` a holder on loopback is a warning; without the key the "
        "flow is `inconclusive`, `loopback-holder`.",
    )
    any_of: NameField | None = Field(
        default=None,
        description="A name that two or more requirements of the matrix share, such as `health`: "
        "for each pair of hosts one of them that passes is enough. What fails beside it"
        " is reported, and does not decide the exit status; if all fail, that is one "
        "finding. Not with `expect: denied`.",
    )
    multicast: MulticastGroup | None = Field(
        default=None,
        description="The group that the packets go to in truth, such as `224.0.0.18` of VRRP "
        "(`ipproto: 112`). netprobe sends from host to host; the results warn that this"
        " does not prove the group (of VRRP `--rehearse=segment` does).",
    )
    quality: QualityFile | None = Field(
        default=None,
        description="How good the way must be, measured with `--quality` alone: `{rtt_p99: 66ms, "
        "jitter: 10ms, loss: 0.1%, required: true}`, each as needed.",
    )
    keepalive: KeepaliveField | None = Field(
        default=None,
        description="How often the row's programs send something over a connection that is silent "
        "otherwise: `30s`, `5m` or `1h`; or `{data: 1h, tcp: 15s}`, where `tcp` are keepalives of "
        "the kernel, which firewalls count, and proxies do not. `netprobe measure idle` alone "
        "holds it against what is forgotten. Only with `tcp`.",
    )
    persistence: Persistence | None = Field(
        default=None,
        description="`none`: the document forbids that the balancer to which the row leads keeps "
        "clients on one back end. `--rehearse=balancer` calls one that does so `blocked`, "
        "`balancer-sticks`; without the key it warns. Only with `tcp`.",
    )
    warnings: list[WarnFile] = Field(
        default=[],
        description="List of `{text, when}`: sentences that the results carry while `when` holds; "
        "they never change a verdict.",
    )


class DocumentedPortsFile(FileModel):
    """Ports that the document sets apart, for `netprobe audit ports`."""

    tcp: list[PortField] = Field(
        default=[], description='TCP ports: numbers, "FIRST-LAST", {setting: NAME}.'
    )
    udp: list[PortField] = Field(
        default=[], description='UDP ports: numbers, "FIRST-LAST", {setting: NAME}.'
    )
    purpose: str = Field(default="", description="What the document says of them.")
    when: ConditionField = Field(default={}, description="Only while all these settings match.")


class RequirementFile(ChangeFile):
    """One line of a matrix."""

    id: NameField = Field(
        description="A name for the requirement, stable once the file is in use. It is unique in "
        "the matrix, and results refer to it."
    )
    sources: NameList = Field(
        alias="from", description="The role, or the roles, that must reach the others."
    )
    destinations: NameList = Field(alias="to", description="The role, or the roles, to reach.")


class WaiverFile(FileModel):
    """A requirement that the user accepts as it is."""

    reason: FilledText = Field(description="A reason, which the report repeats.")
    until: Date | None = Field(default=None, description="The last day on which the waiver holds.")


WaiverField = Annotated[
    WaiverFile, BeforeValidator(split_waiver, json_schema_input_type=str | WaiverFile)
]


class MatrixFile(FileModel):
    """A matrix: what a platform requires of its network, or a site's changes to such a matrix."""

    schema_: Literal["netprobe.matrix/1"] = Field(
        alias="schema", description="The format of this file: netprobe.matrix/1."
    )
    name: NameField | None = Field(
        default=None,
        description="Name of the matrix in reports and in `--set NAME:KEY=VALUE`. With `extends` it"
        " may be left out: then it is the name of the extended matrix, `-`, and the "
        "name of this file without its suffix.",
    )
    title: str | None = Field(
        default=None, description="A line for people; needed unless the file extends another."
    )
    document: DocumentFile = Field(default=DocumentFile(), description="Where the rows come from.")
    extends: FilledText | None = Field(
        default=None,
        description="A bundled matrix, or a path (with a `/` or `.yaml`) from the folder of this "
        "file, that this file changes.",
    )
    local: bool | None = Field(
        default=None,
        description="`true`: a host that is source and destination is tested against its own "
        "address. Otherwise there is no flow.",
    )
    layer: bool | None = Field(
        default=None,
        description="`true`: a part of a platform (a CNI, a load balancer), chosen beside the "
        "platform's own matrix.",
    )
    claims: dict[NameField, ClaimField] = Field(
        default={},
        description="What a cluster has one of, and which one it is here: `{cni: cilium}`, "
        "`{cni: {setting: NAME}}`, or, where the values of the setting are not its names, "
        "`{cni: {setting: NAME, says: WORD}}`. Matrices that claim different values do not go "
        "together.",
    )
    roles: dict[NameField, RoleFile] = Field(
        default={}, description="The roles that requirements refer to."
    )
    settings: dict[NameField, SettingFile] = Field(
        default={}, description="The settings that conditions and ports refer to."
    )
    overlay_mtu: Annotated[int, Field(ge=1280, le=65535)] | None = Field(
        default=None,
        alias="overlay-mtu",
        description="MTU of the pods' network, for --rehearse=overlay; without the key what the "
        "interface sends less 50 (IPv6: 70).",
    )
    requirements: list[RequirementFile] = Field(default=[], description="What must reach what.")
    ranges: list[DocumentedPortsFile] = Field(
        default=[],
        description="Port ranges that the document has opened between nodes. Only the audit of "
        "listening ports asks for them.",
    )
    retired: list[DocumentedPortsFile] = Field(
        default=[],
        description="Ports that the document once gave away and nobody may use, for the audit too.",
    )
    override: dict[str, ChangeFile] = Field(
        default={},
        description="Requirements of the extended matrix, by their ids: what is given replaces what"
        " was there.",
    )
    waive: dict[str, WaiverField] = Field(
        default={},
        description='Requirements to accept as they are, by their ids: `"REASON, until '
        '2027-01-31"`.',
    )
