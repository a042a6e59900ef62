"""What several kinds have: addresses, versions, and proxies with their exceptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import SplitResult, urlsplit

from netprobe.errors import RequestError
from netprobe.load.inventory.addresses import parse_address
from netprobe.load.manifest.manifest import Manifest
from netprobe.load.manifest.said import AddressSaid, NoteSaid, ProxySaid, Said, SettingSaid
from netprobe.load.yaml.document import PathStep
from netprobe.load.yaml.wording import quoted
from netprobe.model.inventory import Address, Proxy
from netprobe.protocols.services.proxy_url import ProxyUrl, parse_proxy

KeyPath = tuple[PathStep, ...]

# The keys of proxies in most manifests.
CAMEL = ("httpProxy", "httpsProxy", "noProxy")

# The tag of an image, of which a digest tells nothing.
_TAG = re.compile(r":v?(\d+\.\d+(?:\.\d+)?)[^:/@]*(?:@sha256:[0-9a-f]+)?\Z")
_ANY_TAG = re.compile(r":([^:/]+)\Z")
_VERSION = re.compile(r"v?(\d+\.\d+(?:\.\d+)?)")


def version_of_image(text: str) -> str:
    """Give the version in an image's tag; empty where there is none, as with a digest alone."""
    found = _TAG.search(text)
    return found[1] if found else ""


def why_no_version(text: str) -> str:
    """Say why an image whose tag has no version tells none."""
    found = _ANY_TAG.search(text.partition("@")[0])
    return f"the tag {quoted(found[1])} is no version" if found else "no tag"


def version_of_text(text: str) -> str:
    """Give numbers and dots of a version such as v1.29.3; empty where it is none."""
    found = _VERSION.match(text)
    return found[1] if found else ""


def address_at(manifest: Manifest, *path: PathStep) -> Address | None:
    """Give the address or name that stands there; None and a problem where it is none."""
    text = manifest.text(*path)
    if not text:
        return None
    try:
        return parse_address(text)
    except ValueError as error:
        manifest.problem(str(error), *path)
        return None


def say_address(
    manifest: Manifest, path: KeyPath, roles: tuple[str, ...], name: str = ""
) -> Iterator[Said]:
    """Say the address that stands at the path, if one does."""
    address = address_at(manifest, *path)
    if address is not None:
        yield AddressSaid(manifest.origin(*path), manifest.name, roles, address, name)


def say_setting(
    manifest: Manifest, name: str, path: KeyPath, values: Sequence[object], reason: str = ""
) -> SettingSaid:
    """Say a setting by what stands at the path."""
    return SettingSaid(manifest.origin(*path), name, tuple(values), reason=reason)


def read_plain(manifest: Manifest, name: str, *path: PathStep) -> Iterator[Said]:
    """Say a setting that has the very text at the path, if one stands there."""
    if manifest.has(*path):
        yield say_setting(manifest, name, path, [manifest.text(*path)])


def say_known(
    manifest: Manifest, name: str, path: KeyPath, meanings: Mapping[str, object]
) -> Iterator[Said]:
    """Say what the word at the path means for a setting; one without a meaning is a note."""
    word = manifest.text(*path)
    if word in meanings:
        yield say_setting(manifest, name, path, [meanings[word]])
    elif word:
        yield NoteSaid(manifest.place(*path), f"{path[-1]} {word} is not known here")


def read_host_url(text: str, ports: Mapping[str, int]) -> tuple[SplitResult, int, Address]:
    """Read a URL, its port and its host. Raises KeyError or ValueError where one is missing.

    ``ports`` are those of the schemes, where the URL itself has none.
    """
    url = urlsplit(text)
    return url, url.port or ports[url.scheme], parse_address(url.hostname or "")


def say_platform(manifest: Manifest) -> Iterator[SettingSaid]:
    """Say the platform of a hosted cluster or of a pool of its nodes."""
    path = ("spec", "platform", "type")
    kind = manifest.text(*path)
    if kind:
        # The documents disagree about the name of bare metal without agents.
        names = ["none", "baremetal-no-agent"] if kind == "None" else [kind.lower()]
        yield say_setting(manifest, "platform", path, names)


def read_url(manifest: Manifest, *path: PathStep) -> ProxyUrl | None:
    """Give a proxy's URL; None where none stands there, or after a problem.

    The text may hold a password: no problem repeats it.
    """
    text = manifest.text(*path)
    if not text:
        return None
    try:
        if urlsplit(text if "://" in text else f"http://{text}").scheme not in ("http", "https"):
            raise RequestError("")
        url = parse_proxy(text, "")
        parse_address(url.host)
        return url
    except (RequestError, ValueError):
        words = "this is no proxy URL, expected one such as http://proxy.example.com:3128"
        manifest.problem(words, *path)
        return None


def read_no_proxy(manifest: Manifest, *path: PathStep) -> tuple[str, ...]:
    """Give the exceptions: a text with commas, or a list."""
    value = manifest.get(*path)
    texts = (
        [manifest.text(*one) for one in manifest.each(*path)]
        if isinstance(value, list)
        else manifest.text(*path).split(",")
    )
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def read_proxy(
    manifest: Manifest, base: KeyPath, keys: tuple[str, str, str], more: Sequence[str] = ()
) -> tuple[Proxy, dict[str, ProxyUrl]]:
    """Give the proxy below a path, and its URLs by their keys.

    ``keys`` are those of the HTTP proxy, the HTTPS proxy and the exceptions; ``more`` are
    exceptions that the platform adds by itself.
    """
    http, https, no = keys
    urls = {key: read_url(manifest, *base, key) for key in (http, https)}
    given = read_no_proxy(manifest, *base, no)
    proxy = Proxy(
        manifest.text(*base, https) or None if urls[https] else None,
        manifest.text(*base, http) or None if urls[http] else None,
        tuple(dict.fromkeys((*given, *more))),
    )
    return proxy, {key: url for key, url in urls.items() if url is not None}


def word_urls(urls: Mapping[str, ProxyUrl]) -> str:
    """Write the URLs of a proxy behind their keys, without passwords."""
    return ", ".join(f"{key} {url}" for key, url in urls.items())


def say_node_proxy(
    manifest: Manifest, base: KeyPath, keys: tuple[str, str, str] = CAMEL, more: Sequence[str] = ()
) -> Iterator[Said]:
    """Say the proxy below a path as that of all nodes, if there is one."""
    proxy, urls = read_proxy(manifest, base, keys, more)
    if urls:
        path = base or (next(iter(urls)),)
        yield ProxySaid(manifest.origin(*path, shown=word_urls(urls)), ("node",), proxy)
