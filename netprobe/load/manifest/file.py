"""Files of manifests: YAML of several documents, lists of ``oc get -o yaml``, and JSON."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator

from netprobe.errors import Problem
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.yaml.document import Document, PathStep, YamlPath
from netprobe.load.yaml.source import parse_documents, parse_inner, read_bytes
from netprobe.load.yaml.wording import listed

# Objects without a kind are known by keys of theirs: each kind with keys of which one is enough.
SHAPES: dict[str, frozenset[str]] = {
    "install-config": frozenset({"baseDomain", "controlPlane", "pullSecret"}),
    "Ignition": frozenset({"ignition"}),
    "Kubean vars": frozenset(
        {
            *("kube_network_plugin", "kube_version", "calico_ipip_mode", "calico_vxlan_mode"),
            *("typha_enabled", "metallb_enabled", "kube_vip_enabled", "container_manager"),
            *("calico_network_backend", "calico_wireguard_enabled", "http_proxy", "https_proxy"),
            *("kube_service_addresses", "kube_pods_subnet", "kube_owner", "no_proxy"),
        }
    ),
    "Kubean hosts": frozenset({"all"}),
}
MANIFEST_KEYS = frozenset({"apiVersion", "kind"}).union(
    *(keys for kind, keys in SHAPES.items() if kind != "Kubean hosts")
)
# Values that are YAML or JSON of their own: of ConfigMaps as text, of Secrets in base64.
INNER = {
    "ConfigMap": ("group_vars.yml", "hosts.yml", "install-config", "install-config.yaml"),
    "Secret": ("value", "userData"),
}


def read_manifest_file(path: str, problems: list[Problem]) -> list[Manifest]:
    """Read all objects of a file; an empty one is a problem."""
    raw = read_bytes(path, problems)
    return [] if raw is None else read_manifest_text(raw, path, problems)


def read_manifest_text(raw: bytes, name: str, problems: list[Problem]) -> list[Manifest]:
    """Read all objects of what a file has, or a command has printed; ``name`` is told of it."""
    before = len(problems)
    documents = parse_documents(raw, problems, name)
    if not documents and len(problems) == before:
        words = 'there is no manifest in it, expected objects that have the key "kind"'
        problems.append(Problem(name, 1, 1, words))
    return [one for document in documents for one in _objects_in(document, ())]


def _objects_in(document: Document, base: tuple[PathStep, ...]) -> Iterator[Manifest]:
    items = document.get((*base, "items"))
    kind = document.get((*base, "kind"))
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        for index, item in enumerate(items):
            if isinstance(item, dict):
                yield from _objects_in(document, (*base, "items", index))
        return
    manifest = Manifest(document, base, _kind_of(document.items(base)))
    yield manifest
    yield from _objects_inside(manifest)


def _kind_of(keys: dict[str, object]) -> str:
    kind = keys.get("kind")
    if isinstance(kind, str) and kind:
        return kind
    return next((name for name, own in SHAPES.items() if own & set(keys)), "")


def _objects_inside(outer: Manifest) -> Iterator[Manifest]:
    """Give the objects that values of a ConfigMap or Secret hold."""
    for path, text in _values_inside(outer):
        inner = parse_inner(outer.document, (*outer.base, *path), text)
        if inner is not None:
            kind = _kind_of(inner.items(()))
            yield Manifest(inner, (), kind)


def _values_inside(outer: Manifest) -> Iterator[tuple[YamlPath, str]]:
    """Give the texts that may be objects, with their paths.

    Where a Secret has a key under ``stringData`` too, that counts, as in Kubernetes.
    """
    is_secret = outer.kind == "Secret"
    for key in INNER.get(outer.kind, ()):
        plain, coded = outer.get("stringData", key), outer.get("data", key)
        if is_secret and isinstance(plain, str):
            if _is_ignition(plain):
                yield ("stringData", key), plain
        elif isinstance(coded, str):
            text = _decode_value(coded) if is_secret else coded
            if text:
                yield ("data", key), text


def _decode_value(text: str) -> str:
    """Decode base64; what holds no Ignition config has nothing to say here."""
    try:
        plain = base64.b64decode("".join(text.split()), validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    return plain if _is_ignition(plain) else ""


def _is_ignition(text: str) -> bool:
    return '"ignition"' in text


def word_empty(manifests: list[Manifest]) -> Iterator[str]:
    """Give a sentence for each ConfigMap and Secret that holds nothing known."""
    for one in manifests:
        if one.kind in INNER and not any(_values_inside(one)):
            what = "no Ignition config" if one.kind == "Secret" else "nothing"
            keys = " or ".join(INNER[one.kind])
            yield f"{one.place('kind')}: {one.title} has {what} under {keys}: nothing is taken"


def word_unread(manifests: list[Manifest], known: frozenset[str]) -> Iterator[str]:
    """Give a sentence for each file about the kinds of it that nothing is taken from."""
    by_file: dict[str, dict[str, None]] = {}
    for one in manifests:
        if one.kind not in known:
            by_file.setdefault(one.document.file, {})[one.kind or "an object without kind"] = None
    for file, kinds in by_file.items():
        yield f"{file}: nothing is taken from {listed(kinds)}"
