"""What ``probe`` of a requirement may be: a name, or a request with its right answer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from netprobe.load.matrix.fields import (
    HeaderName,
    HttpPath,
    Pattern,
    StatusesField,
    split_probe,
)
from netprobe.load.yaml.validation import FileModel

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

    path: HttpPath = Field(
        default="/",
        description="What is asked for, sent as it stands here. Refused, however it is written "
        "(`%69gnition`, `//`, `/../`): `/config/...`, `/ignition`, and `?verbose` at "
        "`/healthz`, `/livez`, `/readyz` and below them, whose answers hold secrets or "
        "leave traces.",
    )
    status: StatusesField = Field(
        default=((200, 299),),
        description='The right status: `200`, `"2xx"`, `"200-204"`, or a list of these (default '
        '`"2xx"`). Redirects are never followed: a right one is `"3xx"`.',
    )
    header: dict[HeaderName, Pattern] = Field(
        default={},
        description="Names, in any case, and what their values must hold: a text, or a regular "
        "expression.",
    )
    body: Pattern | None = Field(
        default=None,
        description="What the first 64 KiB of the body must hold: a text, or a regular expression.",
    )
    tls: bool | None = Field(
        default=None,
        description="`true`: over TLS, asking for the row's `sni`; certificates are not verified. "
        "`false`: without TLS. Without this key both are right: TLS is tried first, and"
        " plaintext where nothing answers in TLS.",
    )
    http2: bool = Field(
        default=False,
        description="`true`: the answer must come over HTTP/2 (in TLS by ALPN, without TLS at "
        "once).",
    )


class ProbeFile(FileModel):
    """What ``split_probe`` makes of a name or a mapping: one of both is there."""

    name: Probe | None = None
    http: HttpFile | None = None


ProbeField = Annotated[
    ProbeFile,
    BeforeValidator(split_probe, json_schema_input_type=Probe | dict[Literal["http"], HttpFile]),
]
