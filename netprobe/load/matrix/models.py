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
    HeaderName,
    HttpPath,
    MulticastGroup,
    Pattern,
    PortField,
    Processes,
    ProtocolsField,
    ServerName,
    StatusesField,
    split_probe,
    split_stops,
    split_waiver,
)
from netprobe.load.yaml.validation import DefaultValue, FileModel, NameField, NameList, Value
from netprobe.model.matrix import Binds, CommonPart, Weight

Probe = Literal[
    "dns", "vxlan", "geneve", "ntp", "ipip", "memberlist", "ike", "openvpn", "kube-apiserver",
    "konnectivity", "ignition", "machine-config-server", "etcd", "kubelet", "registry", "oauth",
    "http-health", "https", "tls", "metrics",
]  # fmt: skip

# By what each may travel; tests hold it against the protocols themselves.
PROBE_TRANSPORTS: dict[str, tuple[str, ...]] = {
    "dns": ("tcp", "udp"), "memberlist": ("tcp", "udp"), "openvpn": ("tcp", "udp"),
    "vxlan": ("udp",), "geneve": ("udp",), "ntp": ("udp",), "ike": ("udp",),
    "ipip": ("ipproto",),
}  # fmt: skip
# The others are services: they speak TLS or HTTP.
SERVICE_TRANSPORTS = ("tcp",)


class HttpFile(FileModel):
    """An HTTP request to a live service, and the answer that is right."""

    path: HttpPath = Field(default="/", description="What is asked for: a path, as it is sent.")
    status: StatusesField = Field(
        default=((200, 299),),
        description='The right status: 200, "2xx", "200-204", or a list of these (default 2xx).',
    )
    header: dict[HeaderName, Pattern] = Field(
        default={},
        description="Headers that must be there: a text in the value, or a regular expression.",
    )
    body: Pattern | None = Field(
        default=None,
        description="A text in the first 64 KiB of the body, or a regular expression.",
    )
    tls: bool | None = Field(
        default=None,
        description="true: over TLS; false: without it. Without this key both are right.",
    )
    http2: bool = Field(default=False, description="true: the answer must come over HTTP/2.")


class ProbeFile(FileModel):
    """What ``split_probe`` makes of a name or a mapping: one of both is there."""

    name: Probe | None = None
    http: HttpFile | None = None


ProbeField = Annotated[
    ProbeFile,
    BeforeValidator(split_probe, json_schema_input_type=Probe | dict[Literal["http"], HttpFile]),
]


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

    description: str = Field(default="", description="What such a host is.")
    implies: NameList = Field(
        default=[], description="Further roles that such a host has too; transitive."
    )
    existing: bool = Field(
        default=False,
        description="What listens there runs before the installation: a refusal is a failure.",
    )
    aliases: NameList = Field(
        default=[], description="Names of the role in inventories of other tools."
    )
    common: CommonPart | None = Field(
        default=None,
        description="The part that the role is in every platform: what inventories of many tools "
        "call it (masters, kube_node, k8s_cluster) means the role.",
    )
    vantage: Literal["none"] | None = Field(
        default=None,
        description="none: nothing can run there (a BMC, a load balancer), unless the inventory "
        "gives the host a vantage of its own.",
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
        default=[], description='TCP ports: numbers, "FIRST-LAST", {setting: NAME}.'
    )
    udp: list[PortField] = Field(
        default=[], description='UDP ports: numbers, "FIRST-LAST", {setting: NAME}.'
    )
    family: Literal["ipv4", "ipv6"] | None = Field(
        default=None,
        description="Only addresses of this family; without the key each that both ends have.",
    )
    icmp: Literal["echo"] | None = Field(default=None, description="ICMP: echo is the only kind.")
    ipproto: ProtocolsField = Field(
        default=[], description="Numbers of raw IP protocols (IPIP is 4)."
    )
    purpose: str = Field(
        default="", description="What the flow is for, in the document's own words."
    )
    row: str = Field(default="", description="The table of the document in which the row stands.")
    when: ConditionField = Field(
        default={}, description="Required only while all these settings match."
    )
    unless: ConditionField = Field(
        default={}, description="Not required while all these settings match."
    )
    optional: bool = Field(
        default=False, description="Reported, but never decides the exit status."
    )
    stops: StopsField | None = Field(
        default=None,
        description="What does not work while the row fails: a word where the document says it, "
        "else {WORD: REASON}. Findings are ordered by it.",
    )
    expect: Literal["allowed", "denied"] = Field(
        default="allowed", description="Whether the flow must get through or must not."
    )
    probe: ProbeField | None = Field(
        default=None,
        description="What to send where plain bytes prove little: a name, or {http: ...}.",
    )
    sni: ServerName | None = Field(
        default=None, description="The name that TLS asks for: a name, or {setting: NAME}."
    )
    existing: bool | None = Field(
        default=None,
        description="Whether the service runs before the installation; else as the role says.",
    )
    process: Processes = Field(
        default=[], description="Programs that may hold the port before the installation."
    )
    owner: Processes = Field(
        default=[],
        description="Programs that hold the port once the platform runs; * stands for any text.",
    )
    binds: Binds | None = Field(
        default=None,
        description="Which addresses of its host the row's program listens on: all, or one "
        "address. Before the installation another process on loopback is in the way of all.",
    )
    any_of: NameField | None = Field(
        default=None,
        description="A name that several requirements share: for each pair of hosts one of them "
        "that passes is enough.",
    )
    multicast: MulticastGroup | None = Field(
        default=None,
        description="The group that the packets go to (224.0.0.18): the results warn that what "
        "is sent from host to host does not prove it.",
    )
    warnings: list[WarnFile] = Field(default=[], description="Sentences that the results carry.")


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

    id: NameField = Field(description="A name for the requirement, stable once the file is in use.")
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
        default=None, description="A name for the matrix, as reports show it."
    )
    title: str | None = Field(default=None, description="A title for people.")
    document: DocumentFile = Field(default=DocumentFile(), description="Where the rows come from.")
    extends: FilledText | None = Field(
        default=None,
        description="A bundled matrix, or a path beside this file, that this file changes.",
    )
    local: bool | None = Field(
        default=None,
        description="Hosts are tested against their own addresses too (default false).",
    )
    layer: bool | None = Field(
        default=None,
        description="true: a part of a platform (a CNI, a load balancer), chosen beside the "
        "matrix of the platform.",
    )
    claims: dict[NameField, ClaimField] = Field(
        default={},
        description="What a cluster has one of, and which one it is here: {cni: cilium}, or "
        "{cni: {setting: cni}}. With says: what each value of the setting comes to that does not "
        "leave it to another matrix. Matrices that claim different values do not go together.",
    )
    roles: dict[NameField, RoleFile] = Field(
        default={}, description="The roles that requirements refer to."
    )
    settings: dict[NameField, SettingFile] = Field(
        default={}, description="The settings that conditions and ports refer to."
    )
    requirements: list[RequirementFile] = Field(default=[], description="What must reach what.")
    ranges: list[DocumentedPortsFile] = Field(
        default=[], description="Port ranges that the document has opened between nodes."
    )
    retired: list[DocumentedPortsFile] = Field(
        default=[], description="Ports that the document once gave away and nobody may use."
    )
    override: dict[str, ChangeFile] = Field(
        default={},
        description="Requirements of the extended matrix: the keys given replace its own.",
    )
    waive: dict[str, WaiverField] = Field(
        default={}, description='Requirements to accept as they are: "reason, until 2027-01-31".'
    )
