"""``matrix show``: what exists before the installation, and who may hold a port."""

from __future__ import annotations

import io
from pathlib import Path

from netprobe.load.matrix.chosen_settings import choose
from netprobe.load.matrix.file import load_matrices
from netprobe.model.inventory import Inventory
from netprobe.model.matrix import ChosenMatrix
from netprobe.report.verbs.matrix import write_matrix_text, write_matrix_yaml

SITE = """\
schema: netprobe.matrix/1
extends: deckhouse-nodes
override:
  ntp: {existing: false}
  etcd: {family: ipv6, stops: pods}
  kubelet: {existing: true, process: [kubelet, k3s]}
"""


def chosen(path: Path, text: str) -> ChosenMatrix:
    """The matrix of a file, with its own settings."""
    path.write_text(text)
    ((one,), _) = choose(load_matrices([str(path)]), Inventory(()), ())
    return one


def test_the_file_that_is_written_says_the_same(tmp_path: Path) -> None:
    """Also where a requirement overrules its role with false."""
    site = chosen(tmp_path / "site.yaml", SITE)
    stream = io.StringIO()
    write_matrix_yaml(site, stream)

    again = chosen(tmp_path / "again.yaml", stream.getvalue())

    assert again.matrix.requirements == site.matrix.requirements
    assert again.matrix.roles == site.matrix.roles
    told = {one.id: one.existing for one in again.matrix.requirements}
    assert (told["ntp"], told["kubelet"], told["etcd"]) == (False, True, None)


def test_a_warning_says_when_it_holds() -> None:
    """Route publishing is the default: what is said of node ports does not hold there."""
    ((one,), _) = choose(load_matrices(["hypershift-hcp"]), Inventory(()), ())
    stream = io.StringIO()
    write_matrix_text(one, lambda _: None, stream)

    when = "(when apiserver-publishing is nodeport and apiserver-port is 6443)"
    assert f"give it with --set apiserver-port=PORT. {when}" in " ".join(stream.getvalue().split())


def test_people_read_it_beside_roles_and_requirements(tmp_path: Path) -> None:
    """A role, both ways to overrule it, and the programs."""
    stream = io.StringIO()
    write_matrix_text(chosen(tmp_path / "site.yaml", SITE), lambda _: None, stream)

    text = stream.getvalue()
    assert "external-dns (runs before the installation): A DNS server" in text
    assert "ntp (need not run before the installation)" in text
    assert "kubelet (runs before the installation)" in text
    assert "etcd (IPv6 alone)" in text
    assert "process   kubelet, k3s" in text
    assert "stops     pods\n" in text
    assert "stops     nodes: the control plane reaches no container of such a node" in text
