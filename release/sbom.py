"""The bill of materials of a release, in CycloneDX's JSON."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, XsUri
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component as Part
from cyclonedx.model.component import ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from release.components import Component, list_components
from release.debian import IMAGE, PYTHON
from release.places import ARCHES, VERSION, source_date
from release.wheels import OWN


def make_sbom() -> str:
    """Give the text: netprobe, and what travels with it in any file, for every architecture."""
    bom = Bom()
    bom.metadata.timestamp = datetime.fromtimestamp(source_date(), UTC)
    own = Part(
        name=OWN, version=VERSION, type=ComponentType.APPLICATION,
        licenses=[LicenseExpression("MIT")],
        bom_ref=f"pkg:pypi/{OWN}@{VERSION}", purl=PackageURL("pypi", None, OWN, VERSION),
    )  # fmt: skip
    bom.metadata.component = own
    found: dict[str, list[Component]] = {}
    for arch in ARCHES:
        for one in list_components(arch, (*PYTHON, *IMAGE)):
            found.setdefault(one.purl, []).append(one)
    parts = [_part_of(ones) for ones in found.values()]
    bom.components.update(parts)
    bom.register_dependency(own, parts)
    names = "\n".join(sorted(found)) + str(source_date())
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, f"{OWN}@{VERSION}\n{names}")
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def _part_of(ones: list[Component]) -> Part:
    """Make one part of what may be several files: a wheel for each architecture."""
    first = ones[0]
    licence = LicenseExpression(first.licence)
    references = [
        ExternalReference(
            type=ExternalReferenceType.DISTRIBUTION,
            url=XsUri(first.purl),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        )
        for digest in sorted({one.sha256 for one in ones})
    ]
    return Part(
        name=first.name, version=first.version, type=ComponentType.LIBRARY, licenses=[licence],
        bom_ref=first.purl, purl=PackageURL.from_string(first.purl), external_references=references,
        description=first.source,
    )  # fmt: skip
