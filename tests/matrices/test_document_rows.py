"""Every row of every document became requirements, or ``no_flows`` beside it says why not."""

from __future__ import annotations

import re
from collections import Counter

from drift.baseline import Baseline, Row, names, read_baseline, sources_of
from drift.tables import hash_of
from pages.matrices import print_section
from tests.matrices.source import LAYERS, PLATFORMS, Plain, as_list, read, requirements

# How many rows the tables of each document have, counted by hand in the documents.
ROWS = {
    "cni-calico": [9],
    "cni-cilium": [13, 13, 18],
    "dce": [4, 6, 4, 6, 2, 9, 8, 1, 2, 4, 2, 1],
    "harvester": [30],
    # Common ingress and egress; tabs of eight platforms (GCP's has no table); private; workers.
    "hypershift-hcp": [1, 3, 1, 1, 1, 1, 1, 2, 3, 1, 2, 7],
    "k0s": [8],
    "k3s": [8, 11],
    "kubeadm": [5, 3, 5, 4],
    "okd-hcp": [2, 8, 2, 3, 5],
    "openshift-host-ports": [69, 5, 23, 2],
    "openshift-ipi": [13, 13, 1, 1],
    "openshift-load-balancer": [2, 2],
    "openshift-upi": [13, 1, 1],
    "rke2": [7, 4, 4, 5, 1, 2],
    "talos": [2, 1],
}
ELEVEN = (*PLATFORMS, *LAYERS)
# Words of documents for protocols without ports, and what a requirement has for them.
PORTLESS = {"ICMP": "icmp", "ESP": 50, "VRRP": 112, "IP-in-IP": 4, "IPIP": 4}


def test_every_document_that_is_under_version_control_is_kept() -> None:
    """Each matrix that names sources has the rows of their tables, and no other has."""
    assert names() == sorted(ROWS)
    for name in names():
        paths = {source.path for source in sources_of(name) if source.hash}
        assert set(read_baseline(name).tables) == paths, name


def test_as_many_rows_as_the_documents_have() -> None:
    """No row was lost on the way into the table."""
    for name, counts in ROWS.items():
        tables = [one for tables in read_baseline(name).tables.values() for one in tables]
        assert [len(table.rows) for table in tables] == counts, name


def test_the_hash_is_that_of_the_rows() -> None:
    """What a matrix says of its document's tables is what is kept of them."""
    for name in names():
        kept = read_baseline(name)
        for source in sources_of(name):
            if source.hash:
                assert hash_of(kept.tables[source.path]) == source.hash, (name, source.path)


def test_every_row_is_accounted_for() -> None:
    """A row has requirements that exist, or a reason why it is no flow."""
    for name in names():
        known, why = requirements(name), read_baseline(name).no_flows
        for row in read_baseline(name).rows:
            assert bool(row.requirements) != bool(row.no_flow), (name, row)
            assert set(row.requirements) <= set(known), (name, row)
            assert not row.no_flow or row.no_flow in why, (name, row)


def test_every_requirement_comes_from_a_row() -> None:
    """Nothing is required that no table and no sentence of the document says."""
    for name in names():
        given = {one for row in read_baseline(name).rows for one in row.requirements}
        assert given == set(requirements(name)), name


def test_every_reason_is_about_a_row() -> None:
    """A reason is of a row that there is, has a few words, and stands on the page."""
    for name in names():
        kept, page = read_baseline(name), "\n".join(print_section(name))
        assert set(kept.no_flows) == {row.no_flow for row in kept.rows if row.no_flow}, name
        for row, why in kept.no_flows.items():
            assert len(why.split()) >= 4, (name, row)
            assert f"| {row} | {why} |" in page, (name, row)


def test_a_row_became_what_it_prints() -> None:
    """The ports and protocols of a row are those of its requirements, neither more nor less."""
    for name in names():
        known = requirements(name)
        for row in rows_of_tables(read_baseline(name)):
            wanted = Counter(printed_ports(name, row))
            given = Counter(
                {port: 1 for one in row.requirements for port in required_ports(name, known[one])}
            )
            assert given == wanted, (name, row)


def rows_of_tables(kept: Baseline) -> list[Row]:
    """The rows that became requirements; sentences print no ports in columns."""
    return [row for row in kept.rows if row.path and row.requirements]


def printed_ports(name: str, row: Row) -> set[object]:
    """The ports of a row as its table prints them, or its protocol where that has none."""
    columns = next(
        table.columns for table in read_baseline(name).tables[row.path]
        if table.heading == row.heading
    )  # fmt: skip
    cells = dict(zip(columns, row.cells, strict=True))
    text = " ".join(
        cell for title, cell in cells.items() if re.search("(?i)port|protocol|protokol", title)
    )
    portless = {number for word, number in PORTLESS.items() if word in text}
    if portless or "sha256:" in text:
        # Calico's cell of IP-in-IP is long: its row says it.
        return portless or {4}
    if (name, text) == ("k0s", "TCP 112"):
        return {112}
    ports = re.findall(r"\d+(?:-\d+)?", re.sub(r"443 or ", "", text))
    # OpenShift's registry of ports has a table for each protocol.
    words = text if re.search("(?i)tcp|udp", text) else row.heading
    kinds = [one for one in ("tcp", "udp") if one in words.lower()] or bare_metal(ports)
    return {f"{kind} {port}" for kind in kinds for port in ports}


def bare_metal(ports: list[str]) -> list[str]:
    """The protocol of rows that print none: DHCP, TFTP and NTP are UDP."""
    return ["udp"] if set(ports) & {"67", "69", "123"} else ["tcp"]


def required_ports(name: str, one: Plain) -> set[object]:
    """The ports of a requirement in the same words; of a setting its default."""
    if "icmp" in one:
        return {"icmp"}
    if "ipproto" in one:
        return {one["ipproto"]}
    settings = read(name).get("settings", {})
    return {
        f"{kind} {settings[port['setting']]['default'] if isinstance(port, dict) else port}"
        for kind in ("tcp", "udp")
        for port in as_list(one.get(kind))
    }
