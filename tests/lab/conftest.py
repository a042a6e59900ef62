"""Every test of this folder is a lab: it needs namespaces and nftables, so root of some kind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lab.netlab import Lab, LabError

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what stands in this folder."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.lab)


def _why_no_lab() -> str | None:
    if os.geteuid() != 0:
        return "labs need root or a user namespace (python tests/lab/userns.py COMMAND)"
    try:
        with Lab() as lab:
            lab.namespace("try").nft("table inet try { }")
    except LabError as problem:
        return f"this machine builds no lab: {problem}"
    return None


@pytest.fixture(scope="session", autouse=True)
def lab_is_possible() -> None:
    """Skip all labs, with the machine's own words, where none can be built."""
    reason = _why_no_lab()
    if reason is not None:
        pytest.skip(reason)
