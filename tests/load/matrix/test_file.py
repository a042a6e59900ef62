"""Matrix files become matrices: every key, the bundled ones, and files that extend others."""

from __future__ import annotations

from pathlib import Path

import pytest

from netprobe.cli.files import list_titles
from netprobe.errors import FileErrors, RequestError
from netprobe.load.matrix.bundled import (
    MatrixTitle,
    bundled_names,
    bundled_path,
    bundled_titles,
)
from netprobe.load.matrix.file import load_matrices
from netprobe.load.yaml.source import head
from netprobe.model.matrix import (
    Condition,
    Keepalive,
    Matrix,
    Requirement,
    Role,
    Setting,
    SettingRef,
    Stops,
    Waiver,
    Warn,
)
from netprobe.model.quality import QualityLimits

BASE = Path(__file__).parents[1] / "good" / "base.yaml"


def load(path: Path, text: str | None = None) -> Matrix:
    """The matrix of one file, written first where a text is given."""
    if text is not None:
        path.write_text(text)
    (matrix,) = load_matrices([str(path)])
    return matrix


def extending(tmp_path: Path, body: str, name: str = "site.yaml") -> Matrix:
    """A matrix that extends the base."""
    return load(tmp_path / name, f"schema: netprobe.matrix/1\nextends: {BASE}\n{body}")


def by_id(matrix: Matrix) -> dict[str, Requirement]:
    """The requirements by their ids."""
    return {requirement.id: requirement for requirement in matrix.requirements}


def test_every_key() -> None:
    """Each key of a matrix file arrives in the model, typed."""
    matrix = load(BASE)

    assert matrix.name == "base"
    assert matrix.title == "A base to extend"
    assert matrix.local is True
    assert matrix.document == {"title": "Ports", "publisher": "Nobody", "retrieved": "2026-11-20"}
    assert matrix.roles["master"] == Role("master", "A master.", ("node",))
    assert list(matrix.settings.values()) == [
        Setting("cni", "choice", "cilium", ("cilium", "flannel"), "The CNI."),
        Setting("modules", "list", ("openvpn", "metallb"), ("openvpn", "metallb")),
        Setting("version", "version", "4.20"),
        Setting("peer-port", "port", 2380),
        Setting("hostname", "string", ""),
        Setting("private", "boolean", False),
        Setting("on", "boolean", True),
    ]
    etcd, vxlan, icmp, ipip = matrix.requirements
    assert etcd == Requirement(
        id="etcd",
        sources=("master",),
        destinations=("master",),
        tcp=((2379, 2379), SettingRef("peer-port")),
        purpose="etcd replication",
        row="Master to master",
        probe="etcd",
    )
    assert vxlan.udp == ((4789, 4789), (7000, 7010))
    assert vxlan.when == Condition(
        (
            ("cni", ("cilium", "flannel")),
            ("modules", ("openvpn",)),
            ("version", (">=4.10,<4.22",)),
            ("private", (False,)),
        )
    )
    assert vxlan.unless == Condition((("hostname", ("api.example.com",)), ("peer-port", (5,))))
    assert vxlan.warnings == (Warn("Careful.", Condition((("peer-port", (2380,)),))),)
    assert icmp.icmp is True
    assert (ipip.ipproto, ipip.optional, ipip.expect) == ((4,), True, "denied")


def test_values_have_plain_types() -> None:
    """The reader's own number classes do not leave the load stage."""
    matrix = load(BASE)

    port = matrix.settings["peer-port"].default
    assert type(port) is int
    assert all(type(number) is int for number in by_id(matrix)["ipip"].ipproto)
    assert type(by_id(matrix)["vxlan"].unless.terms[1][1][0]) is int


def test_unquoted_versions_keep_their_zeros(tmp_path: Path) -> None:
    """``4.20`` without quotes is the version 4.20, not 4.2."""
    body = "settings: {version: {default: 4.20}}\noverride: {vxlan: {when: {version: 4.10}}}\n"

    matrix = extending(tmp_path, body)

    assert matrix.settings["version"].default == "4.20"
    assert by_id(matrix)["vxlan"].when == Condition((("version", ("4.10",)),))


def test_extends_adds_and_overrides(tmp_path: Path) -> None:
    """A file changes what it names and keeps all else of the matrix that it extends."""
    matrix = extending(
        tmp_path,
        """
title: Our site
local: false
roles: {ldap: {description: Directory}, node: {description: Ours}}
settings: {cni: {default: flannel}, ldap-port: {type: port, default: 636}}
override: {etcd: {tcp: [12379], when: {cni: flannel}, optional: true}}
requirements:
  - {id: ldap, from: node, to: ldap, tcp: [{setting: ldap-port}]}
waive: {icmp: "the firewall team says no, until 2027-01-31"}
""",
    )

    base = load(BASE)
    assert matrix.name == "base-site"
    assert (matrix.title, matrix.local, matrix.document) == ("Our site", False, base.document)
    assert matrix.roles["node"] == Role("node", "Ours")
    assert matrix.roles["master"] == base.roles["master"]
    assert matrix.settings["cni"].default == "flannel"
    assert matrix.settings["cni"].values == ("cilium", "flannel")
    assert [requirement.id for requirement in matrix.requirements] == [
        "etcd",
        "vxlan",
        "icmp",
        "ipip",
        "ldap",
    ]
    etcd = by_id(matrix)["etcd"]
    assert etcd.tcp == ((12379, 12379),)
    assert etcd.when == Condition((("cni", ("flannel",)),))
    assert etcd.optional
    assert etcd.purpose == "etcd replication"
    assert by_id(matrix)["vxlan"] == by_id(base)["vxlan"]
    reason = "the firewall team says no"
    assert matrix.waivers == {"icmp": Waiver("icmp", reason, "2027-01-31")}


def test_extends_a_file_that_extends(tmp_path: Path) -> None:
    """Files extend files, by paths beside them; each sees all names of those below."""
    extending(tmp_path, "waive: {icmp: one, etcd: two}\n", "middle.yaml")
    (tmp_path / "top").mkdir()

    matrix = load(
        tmp_path / "top" / "top.yaml",
        "schema: netprobe.matrix/1\nextends: ../middle.yaml\nname: top\nwaive: {icmp: three}\n",
    )

    assert matrix.name == "top"
    assert {key: waiver.reason for key, waiver in matrix.waivers.items()} == {
        "icmp": "three",
        "etcd": "two",
    }


def test_extends_a_bundled_matrix(tmp_path: Path) -> None:
    """A bundled matrix is extended by its name."""
    name = bundled_names()[0]

    matrix = load(tmp_path / "our site.yaml", f"schema: netprobe.matrix/1\nextends: {name}\n")

    assert matrix.name == f"{name}-our-site"
    assert matrix.requirements == load_matrices([name])[0].requirements


def test_circle_of_files(tmp_path: Path) -> None:
    """Files that extend each other are one problem, not an endless reading."""
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        (tmp_path / f"{name}.yaml").write_text(
            f"schema: netprobe.matrix/1\nextends: ./{other}.yaml\n"
        )

    with pytest.raises(FileErrors) as caught:
        load_matrices([str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")])

    (problem,) = caught.value.problems
    words = "the files extend each other in a circle (a.yaml > b.yaml > c.yaml > a.yaml)"
    assert problem.text == f"{words}, expected an end"


def test_problems_of_base_and_file_at_once(tmp_path: Path) -> None:
    """A broken base does not hide what is wrong in the file; its names are not called unknown."""
    (tmp_path / "base.yaml").write_text(BASE.read_text().replace("4789", "0"))
    site = tmp_path / "site.yaml"
    site.write_text(
        "schema: netprobe.matrix/1\nextends: ./base.yaml\n"
        "override: {etcd: {tcp: [70000]}}\nwaive: {vxlan: ok}\n"
    )

    with pytest.raises(FileErrors) as caught:
        load_matrices([str(site)])

    assert sorted(problem.text for problem in caught.value.problems) == [
        "0 is no port, expected 1 to 65535",
        "70000 is no port, expected 1 to 65535",
    ]


@pytest.mark.parametrize(
    ("written", "reason", "until"),
    [
        ('"reason, until 2027-01-31"', "reason", "2027-01-31"),
        ('"reason until 2027-01-31."', "reason", "2027-01-31"),
        ("reason", "reason", None),
        ('"we wait, not until Friday"', "we wait, not until Friday", None),
        ("until then", "until then", None),
        ("{reason: why, until: 2020-02-29}", "why", "2020-02-29"),
        ("{reason: 'why, until 2020'}", "why, until 2020", None),
        ('"long ago, until 1999-12-31"', "long ago", "1999-12-31"),
        ('"old switch, till 2027-01-31"', "old switch", "2027-01-31"),
        ('"Old switch. Until 2027-01-31"', "Old switch.", "2027-01-31"),
        ('"old switch (until 2027-01-31)"', "old switch", "2027-01-31"),
        ('"since 2026-01-01 it is so"', "since 2026-01-01 it is so", None),
        ("{reason: 'open until ticket 5 is done'}", "open until ticket 5 is done", None),
    ],
)
def test_waivers(tmp_path: Path, written: str, reason: str, until: str | None) -> None:
    """A waiver's end is the date behind a last "until"; waivers that ended are kept."""
    matrix = extending(tmp_path, f"waive: {{etcd: {written}}}\n")

    assert matrix.waivers["etcd"] == Waiver("etcd", reason, until)


@pytest.mark.parametrize("written", ["why, until Friday", "until 2027", "x, until 2027-1-31"])
def test_bad_ends_of_waivers(tmp_path: Path, written: str) -> None:
    """What was meant as an end, and is no date, is a problem: it would never end."""
    with pytest.raises(FileErrors, match="is no date, expected one such as 2027-01-31"):
        extending(tmp_path, f'waive: {{etcd: "{written}"}}\n')


@pytest.mark.parametrize(
    "written",
    [
        "until 2027-01-31 the switch stays",
        "old, till 2027-01-31 (ticket 5)",
        "Until 31 Jan 2027, x",
    ],
)
def test_ends_of_waivers_elsewhere(tmp_path: Path, written: str) -> None:
    """A date behind "until" that is not the end of the text is never read as a reason alone."""
    with pytest.raises(
        FileErrors, match=r'does not end with its last day, expected "REASON, until'
    ):
        extending(tmp_path, f'waive: {{etcd: "{written}"}}\n')


@pytest.mark.slow
def test_bundled_matrices_load() -> None:
    """All bundled matrices load, alone and together, and their names are those of their files."""
    names = bundled_names()

    assert len(names) == 16
    assert tuple(matrix.name for matrix in load_matrices(names)) == names


@pytest.mark.slow
def test_titles() -> None:
    """The cheap list has the names and titles of the full one."""
    assert bundled_titles() == {
        matrix.name: MatrixTitle(matrix.title, matrix.layer)
        for matrix in load_matrices(bundled_names())
    }


def test_layers_are_listed_behind_platforms() -> None:
    """Each group has a heading, and none where it is empty."""
    titles = {
        "cni-x": MatrixTitle("X", layer=True),
        "k8s": MatrixTitle("K", layer=False),
    }

    assert list(list_titles(titles)) == [
        "platforms:", "  k8s    K", "layers, each beside a platform:", "  cni-x  X",
    ]  # fmt: skip
    assert list(list_titles({"k8s": titles["k8s"]})) == ["platforms:", "  k8s  K"]


def test_the_cheap_list_reads_layer_before_the_roles(tmp_path: Path) -> None:
    """Bundled files say it there; what follows is not read."""
    path = tmp_path / "x.yaml"
    path.write_text("name: x\nlayer: true\ntitle: X\nroles: {}\nafter: 1\n")

    assert head(str(path), ("title", "layer"), until="roles") == {"title": "X", "layer": "true"}
    assert head(str(path), ("title", "after"), until="roles") == {"title": "X"}


def test_unknown_name() -> None:
    """A name that nobody knows gives the nearest ones, and all of them where none is near."""
    with pytest.raises(RequestError) as caught:
        load_matrices(["dekhouse-node"])
    assert str(caught.value) == (
        '--matrix: there is no bundled matrix "dekhouse-node", did you mean "deckhouse-nodes"?'
    )

    with pytest.raises(RequestError, match="expected one of: cni-calico, cni-cilium, dce"):
        bundled_path("zzz")


def test_file_of_a_bare_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without a path is a bundled name for netprobe: it says how to write the path."""
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text("")

    with pytest.raises(RequestError, match=r"the file of this name is \./mine"):
        load_matrices(["mine"])


def test_one_matrix_twice() -> None:
    """A matrix that is given twice, or by its name and its path, is one."""
    assert len(load_matrices(["dce", "dce", str(bundled_path("dce"))])) == 1


def test_two_files_of_one_name(tmp_path: Path) -> None:
    """Results are found by the matrix's name: two files must not share it."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(BASE.read_text())

    with pytest.raises(FileErrors) as caught:
        load_matrices([str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")])

    words = f'its matrix is called "base" as that of {tmp_path}/a.yaml'
    assert str(caught.value) == f"{tmp_path}/b.yaml: {words}, expected a name of its own"


def test_directory(tmp_path: Path) -> None:
    """A matrix file that is a directory is a problem like any other."""
    folder = tmp_path / "m.yaml"
    folder.mkdir()

    with pytest.raises(FileErrors, match="this is a directory, expected a YAML file"):
        load_matrices([str(folder)])


def test_problems_of_several_files(tmp_path: Path) -> None:
    """All problems of all files come at once, sorted by file and place."""
    (tmp_path / "b.yaml").write_text("schema: netprobe.matrix/2\n")
    (tmp_path / "a.yaml").write_text(BASE.read_text().replace("master: {", "mster: {"))

    with pytest.raises(FileErrors) as caught:
        load_matrices([str(tmp_path / "b.yaml"), "nowhere", str(tmp_path / "a.yaml")])

    assert [(Path(p.file).name, p.line) for p in caught.value.problems] == [
        ("--matrix", 0),
        ("a.yaml", 20),
        ("a.yaml", 21),
        ("b.yaml", 1),
    ]


def test_what_exists_and_who_may_hold_a_port(tmp_path: Path) -> None:
    """Roles and requirements say it; one process stands for a list of one. So does a family."""
    matrix = extending(
        tmp_path,
        """
roles: {master: {existing: true}}
override: {etcd: {existing: false, process: [etcd, k3s-server]}}
requirements:
  - {id: one, from: node, to: node, tcp: [1], process: sshd, existing: true, family: ipv4}
""",
    )

    found = by_id(matrix)
    assert matrix.roles["master"] == Role("master", "A master.", ("node",), existing=True)
    assert not matrix.roles["node"].existing
    assert (found["etcd"].existing, found["etcd"].process) == (False, ("etcd", "k3s-server"))
    assert (found["one"].existing, found["one"].process) == (True, ("sshd",))
    assert [found[id_].family for id_ in ("one", "vxlan")] == [4, None]
    assert (found["vxlan"].existing, found["vxlan"].process) == (None, ())


def test_a_row_says_what_it_stops(tmp_path: Path) -> None:
    """With a reason or without; a file that extends another may say it of the other's rows."""
    matrix = extending(
        tmp_path,
        """
override: {etcd: {stops: installation}}
requirements:
  - {id: one, from: node, to: node, tcp: [1], stops: {nodes: " nothing joins "}}
""",
    )

    found = {one.id: one.stops for one in matrix.requirements}
    assert (found["etcd"], found["one"]) == (Stops("installation"), Stops("nodes", "nothing joins"))
    assert found["vxlan"] is None


def test_a_row_says_how_good_its_way_must_be(tmp_path: Path) -> None:
    """Each limit as needed, in units of its own; a file that extends another may change it."""
    matrix = extending(
        tmp_path,
        """
override: {etcd: {quality: {rtt_p99: 66ms, jitter: 0.5 ms, loss: 0.1%, required: true}}}
requirements:
  - {id: one, from: node, to: node, tcp: [1], quality: {rtt_p99: 500us}}
""",
    )

    found = {one.id: one.quality for one in matrix.requirements}
    assert found["etcd"] == QualityLimits(66_000, 500, 0.001, required=True)
    assert found["one"] == QualityLimits(500)
    assert found["one"].to_file() == {"rtt_p99": "0.5ms"}
    assert found["vxlan"] is None


def test_a_row_says_how_often_its_programs_send(tmp_path: Path) -> None:
    """Times in the units that people use, and the same words again in what is shown."""
    matrix = extending(
        tmp_path,
        """
override: {etcd: {keepalive: 30s}}
requirements:
  - {id: one, from: node, to: node, tcp: [1], keepalive: {data: 60m, tcp: 15s}}
""",
    )

    found = {one.id: one.keepalive for one in matrix.requirements}
    assert (found["etcd"], found["vxlan"]) == (Keepalive(30), None)
    assert found["one"] == Keepalive(3600, 15)
    assert (Keepalive(30).to_file(), Keepalive(None, 90).to_file()) == ("30s", {"tcp": "90s"})
    assert Keepalive(3600, 60).to_file() == {"data": "1h", "tcp": "1m"}


def test_a_row_says_that_clients_must_not_stick(tmp_path: Path) -> None:
    """A file that extends another may say it of the other's rows."""
    matrix = extending(
        tmp_path,
        """
override: {etcd: {persistence: none}}
requirements:
  - {id: one, from: node, to: node, tcp: [1]}
""",
    )

    found = {one.id: one.persistence for one in matrix.requirements}
    assert (found["etcd"], found["one"]) == ("none", None)
