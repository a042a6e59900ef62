"""Tables of what code holds beside what it does with it, for the pages that explain it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from demo.estate import DESCRIPTION
from netprobe.audit.declared import POD_KINDS
from netprobe.batch.engine_folder import ENGINE_KEYS
from netprobe.cluster.kubectl import REMEDIES
from netprobe.cluster.manifest import ManifestOf, write_manifest
from netprobe.konnectivity.guide import STAGE_WORDS
from netprobe.load.manifest import subnets
from netprobe.load.manifest.kind_words import KIND_WORDS
from netprobe.protocols.services.identify import Service
from netprobe.protocols.services.pages import SIGNS
from netprobe.protocols.services.services import SERVICES
from netprobe.report.verbs.konnectivity import STAGE_HEADS

TESTS = Path(__file__).parents[1] / "tests"


def print_table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of Markdown."""
    heads = list(heads)
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, *rows)]
    return "\n".join([lines[0], f"|{'---|' * len(heads)}", *lines[1:]])


def print_engine_keys() -> str:
    """What stands in the ``engine.json`` of a folder for engines."""
    return print_table(("key", "what it is"), ENGINE_KEYS.items())


def print_services() -> str:
    """What each live service is asked, and how its answer is recognised."""
    rows = (
        (f"`{probe}`", word_request(service), service.known_by, service.never)
        for probe, service in SERVICES.items()
    )
    return print_table(("`probe:`", "request", "recognised by", "never"), rows)


def word_request(service: Service) -> str:
    """Say what a service is asked."""
    return "".join(_word_request(service))


def _word_request(service: Service) -> Iterator[str]:
    yield ", then ".join(f"`GET {path}`" for path in service.paths) or "handshake, nothing sent"
    if service.call:
        yield " (h2); without a certificate request one gRPC call of a method that no service has"
    if service.ready:
        yield f"; then `GET {service.ready}`, of which a status from 500 on is a warning"
    if service.either:
        yield ", with TLS or without"
    if not service.tls:
        yield ", without TLS"
    if service.plain_ports:
        yield f" ({', '.join(map(str, sorted(service.plain_ports)))}: without TLS)"


def print_signs() -> str:
    """What is said of an HTTP answer, and by what it is known."""
    return print_table(("what the report says", "by what it is known"), SIGNS.items())


def print_demo() -> str:
    """What ``make demo-shell`` says of its cluster."""
    return f"```\n{DESCRIPTION}```"


def print_pod_kinds() -> str:
    """What the audit finds of pods."""
    return print_table(
        ("kind", "what it means"), ((f"`{kind}`", words) for kind, words in POD_KINDS.items())
    )


def print_refusals() -> str:
    """What a cluster's API refuses with words that are known, and what helps."""
    return print_table(
        ("the API says", "netprobe adds"), ((f"`{sign}`", words) for sign, words in REMEDIES)
    )


def print_manifest() -> str:
    """The objects of a run in a cluster, as ``manifest`` prints them."""
    wanted = ManifestOf("RUN", 3, b"", "IMAGE")
    return f"```yaml\n{write_manifest(wanted).replace('run.pyz: ', 'run.pyz: ...')}```"


def print_subnet_rules() -> str:
    """What is checked of internal subnets."""
    return print_table(("rule", "what is checked"), subnets.RULES.items())


def print_stages() -> str:
    """The stages of a diagnosis, with the heads of their columns."""
    rows = (
        (f"`{stage}` (`{STAGE_HEADS[stage]}`)" if stage in STAGE_HEADS else f"`{stage}`", *words)
        for stage, words in STAGE_WORDS.items()
    )
    return print_table(("stage (in the table)", "what happens", "it fails where"), rows)


def print_manifest_kinds() -> str:
    """What is taken of each kind of manifest."""
    rows = ((kind, *words) for kind, words in KIND_WORDS.items())
    return print_table(("kind", "settings", "addresses and proxies"), rows)


def print_facts_of_tunnels() -> str:
    """What each test of the kernel's tunnels says."""
    return print_docstrings(TESTS / "lab" / "test_tunnel_facts.py")


def print_docstrings(path: Path) -> str:
    """A list of what the tests of a file say."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tests = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    said = (ast.get_docstring(node) or "" for node in tests if node.name.startswith("test_"))
    return "\n".join(f"* {' '.join(words.split())}".replace("``", "`") for words in said)
