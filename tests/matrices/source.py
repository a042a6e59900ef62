"""Reads the bundled matrices as plain data: these tests do not rest on netprobe's own loader."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parents[2] / "matrices"
FIRST = ("dce", "deckhouse-nodes", "hypershift-hcp", "okd-hcp", "openshift-host-ports")
LAYERS = ("cni-calico", "cni-cilium", "openshift-load-balancer", "talos")
PLATFORMS = ("harvester", "k0s", "k3s", "kubeadm", "openshift-ipi", "openshift-upi", "rke2")
NAMES = (*FIRST, *PLATFORMS, *LAYERS)

# A matrix or a requirement as YAML gives it: the tests check that its shape is right.
Plain = dict[str, Any]


class _Loader(yaml.CSafeLoader):
    """Plain YAML that refuses duplicate keys and leaves dates as the text that was written."""

    yaml_implicit_resolvers = {  # noqa: RUF012  (PyYAML's own attribute)
        first: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Build a mapping; PyYAML alone would silently keep the last of two equal keys."""
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"duplicate key {node.start_mark}: {keys}"
        return super().construct_mapping(node, deep=deep)


@cache
def read(name: str) -> Plain:
    """The matrix of that name; all tests share it and only read."""
    data: Plain = yaml.load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"), _Loader)
    return data


def requirements(name: str) -> dict[str, Plain]:
    """The requirements of a matrix by id, in file order."""
    return {requirement["id"]: requirement for requirement in read(name)["requirements"]}


def as_list(value: Any) -> list[Any]:
    """A scalar as a list of one; nothing as an empty list."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
