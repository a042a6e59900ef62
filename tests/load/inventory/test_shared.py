"""Addresses that several hosts of an inventory have."""

from __future__ import annotations

from pathlib import Path

import pytest

from netprobe.errors import FileErrors
from netprobe.load.inventory.discover import load_inventory

HEAD = "schema: netprobe.inventory/1\nhosts:\n"
NOTE = "hosts a, b share the address 10.0.0.1: is it a virtual one?"


def write(folder: Path, *lines: str, name: str = "i.yaml") -> str:
    path = folder / name
    path.write_text(HEAD + "".join(f"  {line}\n" for line in lines))
    return str(path)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        # A slip of the pen; ssh to one address says nothing else.
        ("", ""),
        ("", "ssh: {host: 192.0.2.2}"),
        ("ssh: {host: 192.0.2.1}", "ssh: {host: 192.0.2.2}"),
        ("vantage: {command: [x]}", "vantage: {command: [y]}"),
        ("vantage: local", "vantage: {command: [y]}"),
        ("vantage: local", ""),
    ],
)
def test_two_agents_with_one_address_are_an_error(tmp_path: Path, first: str, second: str) -> None:
    """What is sent to one of them may reach the other."""
    path = write(
        tmp_path,
        f"a: {{address: 10.0.0.1, roles: [n], {first}}}",
        f"b: {{addresses: [10.0.0.3, 10.0.0.1], roles: [n], {second}}}",
    )

    with pytest.raises(FileErrors) as caught:
        load_inventory([path])

    (problem,) = caught.value.problems
    assert str(problem) == (
        f'{path}:4:3: host "b": "10.0.0.1" is the address of host "a" too, and both have agents, '
        "expected an address of its own; a virtual address is a host of its own with vantage none, "
        "and one machine is one host with all its roles"
    )


def test_each_host_is_told_once(tmp_path: Path) -> None:
    """Three with one address are two problems."""
    path = write(tmp_path, *(f"{name}: {{address: 10.0.0.1, roles: [n]}}" for name in "abc"))

    with pytest.raises(FileErrors) as caught:
        load_inventory([path])

    assert [problem.line for problem in caught.value.problems] == [4, 5]


def test_files_are_compared_too(tmp_path: Path) -> None:
    """Several files are one inventory."""
    first = write(tmp_path, "a: {address: 10.0.0.1, roles: [n]}", name="1.yaml")
    second = write(tmp_path, "b: {address: 10.0.0.1, roles: [n]}", name="2.yaml")

    with pytest.raises(FileErrors) as caught:
        load_inventory([first, second])

    assert [problem.line for problem in caught.value.problems] == [3]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("", "vantage: none"),
        ("vantage: none", "vantage: none"),
        ("vantage: {command: [x]}", "vantage: {command: [x]}"),
        ("ssh: {host: 192.0.2.1}", "ssh: {host: 192.0.2.1}"),
        ("vantage: local", "vantage: local"),
    ],
)
def test_a_virtual_address_and_a_second_name_are_noted(
    tmp_path: Path, first: str, second: str
) -> None:
    """One of them has no agent, or the way onto both says that they are one machine."""
    path = write(
        tmp_path,
        f"a: {{address: 10.0.0.1, roles: [n], {first}}}",
        f"b: {{address: 10.0.0.1, roles: [n], {second}}}",
    )

    assert load_inventory([path]).notes == (NOTE,)


def test_loopback_of_one_machine_is_not_shared(tmp_path: Path) -> None:
    """All its names mean itself."""
    path = write(
        tmp_path,
        "a: {address: 127.0.0.1, roles: [n], vantage: local}",
        "b: {address: 127.0.0.1, roles: [n], vantage: none}",
    )

    (note,) = load_inventory([path]).notes
    assert "never leaves this machine" in note
