"""What travels with netprobe in a release: names, versions, licences, and where the sources are."""

from __future__ import annotations

import hashlib
import re
import subprocess
import zipfile
from collections.abc import Iterable
from email.message import Message
from email.parser import Parser
from functools import cache
from pathlib import Path
from typing import NamedTuple

from release.debian import PYTHON, Package, fetch_packages, locked_packages, read_package
from release.places import Arch
from release.wheels import fetch_wheels, needed_requirements

# Of Debian's packages, whose copyright files are for people.
_LICENCES = {
    "busybox-static": "GPL-2.0-only",
    "libbz2-1.0": "bzip2-1.0.6",
    "libc6": "LGPL-2.1-or-later",
    "libcom-err2": "MIT",
    "libexpat1": "MIT",
    "libffi8": "MIT",
    "libgcc-s1": "GPL-3.0-or-later WITH GCC-exception-3.1",
    "libgssapi-krb5-2": "MIT",
    "libk5crypto3": "MIT",
    "libkeyutils1": "LGPL-2.1-or-later",
    "libkrb5-3": "MIT",
    "libkrb5support0": "MIT",
    "liblzma5": "0BSD",
    "libpcre2-8-0": "BSD-3-Clause",
    "libpython3.11-minimal": "PSF-2.0",
    "libpython3.11-stdlib": "PSF-2.0",
    "libselinux1": "LicenseRef-public-domain",
    "libsqlite3-0": "blessing",
    "libssl3": "Apache-2.0",
    "libuuid1": "BSD-3-Clause",
    "openssh-client": "BSD-2-Clause",
    "python3.11-minimal": "PSF-2.0",
    "zlib1g": "Zlib",
}
# Of wheels whose metadata say it in other words than SPDX.
_WORDS = {
    "BSD": "BSD-3-Clause",
    "BSD License": "BSD-3-Clause",
    "BSD-2-Clause": "BSD-2-Clause",
    "ISC": "ISC",
    "MIT License": "MIT",
    "MPL-2.0": "MPL-2.0",
    "Apache 2.0": "Apache-2.0",
}


class Component(NamedTuple):
    """Something that travels: ``purl`` is its name for programs, ``source`` where its source is."""

    name: str
    version: str
    licence: str
    sha256: str
    purl: str
    source: str


def list_components(arch: Arch, names: tuple[str, ...] = PYTHON) -> list[Component]:
    """List packages of Debian of these names, and all wheels."""
    packages = locked_packages(arch, names)
    fetch_packages(packages)
    return [*map(_of_package, packages), *_list_wheels(arch)]


def _of_package(package: Package) -> Component:
    source = subprocess.run(
        ["dpkg-deb", "-f", str(package.path), "Source"], capture_output=True, text=True, check=True
    ).stdout.strip()
    name, _, version = source.partition(" ")
    version = version.strip("()") or package.version
    purl = f"pkg:deb/debian/{package.name}@{package.version}?arch={package.arch}&distro=debian-12"
    where = f"Debian 12: apt-get source {name or package.name}={version}"
    return Component(
        package.name, package.version, _LICENCES[package.name], package.sha256,
        purl.replace("+", "%2B"), where,
    )  # fmt: skip


@cache
def _list_wheels(arch: Arch) -> list[Component]:
    allowed = needed_requirements()
    found = []
    for path in fetch_wheels(arch):
        with zipfile.ZipFile(path) as archive:
            name = next(one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
            metadata = Parser().parsestr(archive.read(name).decode("utf-8"), headersonly=True)
        key = re.sub(r"[-_.]+", "-", metadata["Name"]).lower()
        version = metadata["Version"]
        where = f"PyPI: pip download --no-binary :all: --no-deps {key}=={version}"
        digest = hash_of(path)
        assert digest in allowed[key]
        found.append(
            Component(
                key, version, _licence_of(metadata), digest, f"pkg:pypi/{key}@{version}", where
            )
        )
    return found


def hash_of(path: Path) -> str:
    """Give the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _licence_of(metadata: Message) -> str:
    if metadata["License-Expression"]:
        return str(metadata["License-Expression"])
    words = str(metadata["License"] or "").strip()
    if words and "\n" not in words:
        return _WORDS.get(words, words)
    classifiers = metadata.get_all("Classifier") or []
    named = [one.rpartition(" :: ")[2] for one in classifiers if one.startswith("License :: OSI")]
    return _WORDS.get(named[0], named[0]) if named else "NOASSERTION"


def write_licences(arch: Arch, folder: Path, names: tuple[str, ...] = PYTHON) -> None:
    """Write the list of what travels, and the licences of Debian's packages.

    Those of wheels lie beside them, in their dist-info folders.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "COMPONENTS.md").write_text(_table(list_components(arch, names)), encoding="utf-8")
    for package in locked_packages(arch, names):
        for name, content in read_package(package):
            if name == f"usr/share/doc/{package.name}/copyright" and isinstance(content, bytes):
                (folder / f"{package.name}.copyright").write_bytes(content)


def _table(components: Iterable[Component]) -> str:
    rows = [f"| {c.name} | {c.version} | {c.licence} | {c.source} |" for c in components]
    head = [
        "# What travels with netprobe",
        "",
        "netprobe itself is under the MIT licence. These lie beside it, each under its own: the",
        "libraries unchanged, as files that can be replaced.",
        "",
        "| what | version | licence | source |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])
