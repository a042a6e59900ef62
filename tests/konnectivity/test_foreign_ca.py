"""``--ca`` is given, and another CA signed the certificate of a real TLS server of this host."""

from __future__ import annotations

import itertools
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.konnectivity.test_loopback import server
from tests.lab.cli import Finished, netprobe
from tests.lab.konnectivity import pki
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow

NAME = "konn.lab.test"
INSPECTION = {"O": "Example", "CN": "Example TLS Inspection"}
SIGNER = {"OU": "kubernetes", "CN": "konnectivity-signer"}
LOOK = "a firewall that inspects TLS"


@dataclass(frozen=True)
class Shown:
    """What the server shows. ``asks``: for certificates of its own CA, or goes on without one where
    ``lenient``; ``leaves``: so many, in turn."""

    code: str
    subject: dict[str, str] = field(default_factory=lambda: {"CN": NAME})
    issuer: dict[str, str] = field(default_factory=lambda: INSPECTION)
    names: Sequence[str] = (NAME,)
    asks: bool = False
    lenient: bool = False
    alpn: tuple[str, ...] = ()
    leaves: int = 1


COPIED = {"O": "kubernetes", "CN": "konnectivity-server"}
SHOWN = {
    "for the name, asks for certificates": Shown("CERT_UNTRUSTED", asks=True, alpn=("h2",)),
    "for the name, asks for nothing": Shown("TLS_INTERCEPTED"),
    "for the name, a new one each time": Shown("TLS_INTERCEPTED", leaves=2),
    "subject copied": Shown("CERT_UNTRUSTED", COPIED),
    "subject copied, asks for certificates": Shown(
        "CERT_UNTRUSTED", COPIED, asks=True, alpn=("h2",)
    ),
    "subject copied, a new one each time": Shown("CERT_UNTRUSTED", COPIED, leaves=2),
    "for another name": Shown("WRONG_SERVICE", {"CN": "block.test"}, names=("block.test",)),
    "CA of the same name": Shown("CERT_UNTRUSTED", COPIED, SIGNER, asks=True, alpn=("h2",)),
}
# The others show the same of one more mixture.
USUAL = (
    "for the name, asks for certificates", "for the name, a new one each time", "subject copied",
    "for another name",
)  # fmt: skip


def make_contexts(folder: Path, shown: Shown) -> list[ssl.SSLContext]:
    """One context for each certificate of the server."""
    authority = pki.authority(**shown.issuer)
    (folder / "own.crt").write_bytes(authority.pem())
    return [make_context(folder, shown, authority, f"{number}") for number in range(shown.leaves)]


def make_context(
    folder: Path, shown: Shown, authority: pki.Authority, number: str
) -> ssl.SSLContext:
    """A context with a certificate of its own."""
    file = f"leaf{number}.pem"
    leaf = pki.issue(folder, file, authority, shown.names, expired=False, **shown.subject)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(leaf)
    if shown.alpn:
        context.set_alpn_protocols(list(shown.alpn))
    if shown.asks:
        context.load_verify_locations(folder / "own.crt")
        context.verify_mode = ssl.CERT_OPTIONAL if shown.lenient else ssl.CERT_REQUIRED
    return context


def diagnose(folder: Path, shown: Shown, *words: str) -> Finished:
    """Diagnose a server that shows this."""
    contexts = itertools.cycle(make_contexts(folder, shown))

    def serve(sock: socket.socket) -> None:
        sock.settimeout(PATIENCE_S)
        with suppress(OSError), next(contexts).wrap_socket(sock, server_side=True) as secure:
            if shown.lenient:
                secure.recv(65536)

    with server(serve) as port:
        there = ("--server", f"127.0.0.1:{port}", "--publishing", "nodeport", "--hostname", NAME)
        return netprobe("diagnose", "konnectivity", *there, *words, "-o", "json")


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The CA that the agent has, which signed nothing here."""
    path = tmp_path_factory.mktemp("given") / "konnectivity-ca.crt"
    path.write_bytes(pki.authority(**SIGNER).pem())
    return path


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in USUAL else pytest.mark.full) for name in SHOWN]
)
def test_a_chain_of_another_ca_is_a_fault(tmp_path: Path, given: Path, name: str) -> None:
    """Whatever its subject is: the issuer is named, and what an inspecting firewall looks like."""
    shown = SHOWN[name]
    run = diagnose(tmp_path, shown, "--ca", str(given), "--flavour", "hypershift")
    (worker,) = run.document["workers"]
    assert (worker["code"], worker["outcome"], run.status) == (shown.code, "fault", 1), worker
    assert f"CN={shown.issuer['CN']}" in worker["because"]
    assert "does not lead to --ca" in worker["because"]
    assert LOOK in worker["remedy"]
    assert "--" not in worker["remedy"], "an option that was given"


@pytest.mark.parametrize("ca", ["", "own.crt"])
def test_advice_asks_for_no_option_that_was_given(tmp_path: Path, ca: str) -> None:
    """A server that fits no picture: ``--ca`` may narrow it down, if it was not given."""
    shown = Shown("UNEXPLAINED", asks=True, lenient=True, alpn=("h2",))
    run = diagnose(tmp_path, shown, *(("--ca", str(tmp_path / ca)) if ca else ()))
    (worker,) = run.document["workers"]
    assert (worker["code"], run.status) == ("UNEXPLAINED", 3), worker["because"]
    assert ("give --ca" in worker["remedy"]) == (not ca)
    assert "--flavour" not in worker["remedy"], "it narrows nothing down"
    assert "--" not in worker["remedy"].replace("give --ca", "")
