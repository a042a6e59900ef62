"""Reads what ``kubectl get pods -A -o json`` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from netprobe.errors import FileErrors, Problem
from netprobe.files import MIB, read_file
from netprobe.load.yaml.wording import quoted
from netprobe.model.plan import Pod, PodPort
from netprobe.model.printable import clean

# A cluster of thousands of nodes prints some hundred MB.
MOST_BYTES = 1024 * MIB
_EXPECTED = "what `kubectl get pods -A -o json` prints"
# By this uid a node knows a static pod; the API server gives its mirror another one.
_CONFIG = ("kubernetes.io/config.hash", "kubernetes.io/config.mirror")


class _OtherKindError(Exception):
    """An object of another kind; the message is the kind."""


def read_pods(path: str) -> tuple[Pod, ...]:
    """Read the pods that have a node. Raises FileErrors where the file is none of pods."""
    try:
        document = json.loads(read_file(path, _EXPECTED, MOST_BYTES).decode("utf-8"))
    except UnicodeDecodeError:
        raise _not_pods(path, "this is no text in UTF-8") from None
    except json.JSONDecodeError as error:
        words = f"this is no JSON: {error.msg}"
        raise _not_pods(path, words, error.lineno, error.colno) from None
    except (RecursionError, ValueError):
        words = "this JSON is nested too deep, or has too long a number"
        raise _not_pods(path, words) from None
    items = document.get("items", [document]) if isinstance(document, dict) else None
    if not isinstance(items, list):
        raise _not_pods(path, "this JSON is no list of pods")
    try:
        return tuple(pod for item in items if (pod := _read_pod(item)) is not None)
    except _OtherKindError as error:
        words = f"an item of the list is no pod: its kind is {error}"
        raise _not_pods(path, words) from None
    except (AttributeError, KeyError, TypeError, ValueError):
        words = "an item of the list is no pod: it lacks what every pod has (metadata, spec)"
        raise _not_pods(path, words) from None


def _not_pods(path: str, words: str, line: int = 0, column: int = 0) -> FileErrors:
    return FileErrors([Problem(path, line, column, f"{words}, expected {_EXPECTED}")])


def _read_pod(item: dict[str, Any]) -> Pod | None:  # Any: JSON
    """Read one pod; None where it has no node yet."""
    if item.get("kind", "Pod") != "Pod":
        raise _OtherKindError(quoted(item["kind"]))
    meta, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    notes = meta.get("annotations") or {}
    uids = (meta.get("uid"), *map(notes.get, _CONFIG))
    if not spec.get("nodeName"):
        return None
    host_network = spec.get("hostNetwork") is True
    addresses = {status.get("hostIP"), *(one.get("ip") for one in status.get("hostIPs") or ())}
    return Pod(
        name=clean(f"{meta.get('namespace', 'default')}/{meta['name']}"),
        uids=tuple(dict.fromkeys(str(uid) for uid in uids if uid)),
        node=clean(str(spec["nodeName"])),
        addresses=tuple(sorted(str(address) for address in addresses if address)),
        host_network=host_network,
        running=status.get("phase") == "Running",
        ports=tuple(_list_ports(spec, host_network)),
    )


def _list_ports(spec: dict[str, Any], host_network: bool) -> Iterator[PodPort]:
    """Give what containers declare; an init container that goes on (a sidecar) is one of them."""
    sidecars = (one for one in spec.get("initContainers") or () if "restartPolicy" in one)
    for container in (*spec["containers"], *sidecars):
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port["containerPort"] if host_network else None)
            if number:
                protocol = str(port.get("protocol", "TCP")).lower()
                yield PodPort(clean(protocol), int(number), clean(str(container.get("name", ""))))
