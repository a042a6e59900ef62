"""An API server of a cluster, small: what netprobe asks for, with the API's own objects and errors.

It counts calls, plays the controller of DaemonSets, and lets kubelets (``kubelets.py``) run pods.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]
# What becomes of a pod on its node, which is changed in place, before the DaemonSet's call is
# answered; what takes time goes on by itself.
Kubelet = Callable[[Json, bytes], object]
SPACE = r"/api/v1/namespaces/([^/]+)"
DAEMONS = r"/apis/apps/v1/namespaces/([^/]+)/daemonsets"
KINDS = {"nodes": "NodeList", "namespaces": "NamespaceList", "pods": "PodList",
         "events": "EventList"}  # fmt: skip


def status(code: int, reason: str, message: str) -> Json:
    """An error as the API gives it; webhooks leave the reason out."""
    named = {"reason": reason} if reason else {}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, **named, "code": code}  # fmt: skip


class ApiError(Exception):
    """What a call is answered with, instead of its object."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.answer = status(code, reason, message)


@dataclass
class Api:
    """The cluster. ``refused``: by method and last word of the path; with
    the key ``once`` only the next call. ``gone_at``: at these calls the
    connection ends without an answer. ``makes_no_pod``: the words of the event;
    ``most_pods``: how many it makes all the same.
    """

    nodes: Sequence[Json] = ()
    kubelet: Kubelet = lambda _pod, _bundle: None
    minor: str = "37"
    refused: dict[tuple[str, str], Json] = field(default_factory=dict)
    gone_at: Callable[[str, str], bool] = lambda _method, _path: False
    makes_no_pod: str = ""
    most_pods: int = 0
    calls: list[tuple[str, str]] = field(default_factory=list)
    spaces: dict[str, Json] = field(default_factory=dict)
    made: dict[str, dict[str, Json]] = field(default_factory=dict)
    pods: dict[str, list[Json]] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    # Of nodes whose logs cannot be read: the answer instead.
    mute: dict[str, Json] = field(default_factory=dict)
    # Calls that get no answer before the server ends.
    hangs_at: Callable[[str, str], bool] = lambda _method, _path: False
    ended: threading.Event = field(default_factory=threading.Event)

    def answer(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> Any:
        """Answer a call. Raises ApiError."""
        refused = self.refused.get((method, path.rpartition("/")[2]))
        if refused is not None:
            if "once" in refused:
                del self.refused[method, path.rpartition("/")[2]]
            raise ApiError(refused["code"], refused.get("reason", ""), refused["message"])
        for wanted, form, act in self.routes:
            found = re.fullmatch(form, path)
            if method == wanted and found:
                return act(self, *found.groups(), query if method == "GET" else body)
        raise ApiError(404, "NotFound", "the server could not find the requested resource")

    def _version(self, _query: object) -> Json:
        return {"major": "1", "minor": self.minor, "gitVersion": f"v1.{self.minor}.1"}

    def _list_nodes(self, query: Mapping[str, str]) -> Json:
        return self._page("nodes", self.nodes, query)

    def _list_spaces(self, query: Mapping[str, str]) -> Json:
        return self._page("namespaces", list(self.spaces.values()), query)

    def _create_space(self, body: bytes) -> Json:
        made: Json = json.loads(body)
        name = made["metadata"]["name"]
        if name in self.spaces:
            raise ApiError(409, "AlreadyExists", f'namespaces "{name}" already exists')
        made["metadata"] |= {"creationTimestamp": "2026-11-28T10:00:00Z", "uid": f"{name}-1"}
        self.spaces[name] = made
        return made

    def _delete_space(self, name: str, body: bytes) -> Json:
        if name not in self.spaces:
            raise ApiError(404, "NotFound", f'namespaces "{name}" not found')
        if json.loads(body)["preconditions"]["uid"] != self.spaces[name]["metadata"]["uid"]:
            raise ApiError(409, "Conflict", "the UID in the precondition is another one")
        self.deleted.append(name)
        return self.spaces.pop(name)

    def _create_config(self, space: str, body: bytes) -> Json:
        made: Json = json.loads(body)
        self.made.setdefault(space, {})["config"] = made
        return made

    def _create_daemons(self, space: str, body: bytes) -> Json:
        made: Json = json.loads(body)
        self.made.setdefault(space, {})["netprobe"] = made
        most = self.most_pods if self.makes_no_pod else None
        chosen = [node for node in self.nodes if fits(made, node)][:most]
        self.pods[space] = [make_pod(made, node) for node in chosen]
        for pod in self.pods[space]:
            self.kubelet(pod, self.bundle(space))
        return made

    def bundle(self, space: str) -> bytes:
        """What the ConfigMap holds, still in base64."""
        data: str = self.made[space]["config"]["binaryData"]["run.pyz"]
        return data.encode()

    def _get_daemons(self, space: str, name: str, _query: object) -> Json:
        made, pods = self.made.get(space, {}).get(name), self.pods.get(space, ())
        if made is None:
            raise ApiError(404, "NotFound", f'daemonsets.apps "{name}" not found')
        ready = sum(is_ready(pod) for pod in pods)
        wanted = sum(fits(made, node) for node in self.nodes)
        counts = {"desiredNumberScheduled": wanted, "currentNumberScheduled": len(pods),
                  "numberReady": ready}  # fmt: skip
        return {**made, "status": counts}

    def _list_pods(self, space: str, query: Mapping[str, str]) -> Json:
        return self._page("pods", self.pods.get(space, []), query)

    def _read_log(self, space: str, name: str, _query: object) -> str:
        node = next(one["spec"]["nodeName"] for one in self.pods[space]
                    if one["metadata"]["name"] == name)  # fmt: skip
        if node in self.mute:
            refused = self.mute[node]
            raise ApiError(refused["code"], refused.get("reason", ""), refused["message"])
        return ""

    def _list_events(self, space: str, query: Mapping[str, str]) -> Json:
        # Events have no order; an account that is not there at once is usual.
        words = [self.makes_no_pod, "Error creating: serviceaccount not found"]
        events = [
            {"message": one, "metadata": {}, "lastTimestamp": f"2026-11-28T10:0{9 - at}:00Z"}
            for at, one in enumerate(words if self.makes_no_pod else ())
        ]
        return self._page("events", events, query)

    def _page(self, kind: str, items: Sequence[Json], query: Mapping[str, str]) -> Json:
        chosen = [one for one in items if is_selected(one, query.get("labelSelector", ""))]
        begin, limit = int(query.get("continue", 0)), int(query.get("limit", len(chosen)))
        token = {"continue": str(begin + limit)} if begin + limit < len(chosen) else {}
        metadata = {"resourceVersion": "1", **token}
        return {"kind": KINDS[kind], "apiVersion": "v1", "metadata": metadata,
                "items": chosen[begin : begin + limit]}  # fmt: skip

    routes: ClassVar[Sequence[tuple[str, str, Callable[..., Json | str]]]] = (
        ("GET", "/version", _version),
        ("GET", "/api/v1/nodes", _list_nodes),
        ("GET", "/api/v1/namespaces", _list_spaces),
        ("POST", "/api/v1/namespaces", _create_space),
        ("DELETE", SPACE, _delete_space),
        ("POST", f"{SPACE}/configmaps", _create_config),
        ("GET", f"{SPACE}/pods", _list_pods),
        ("GET", f"{SPACE}/pods/([^/]+)/log", _read_log),
        ("GET", f"{SPACE}/events", _list_events),
        ("POST", DAEMONS, _create_daemons),
        ("GET", f"{DAEMONS}/([^/]+)", _get_daemons),
    )


def is_ready(pod: Json) -> bool:
    """Whether a kubelet has said that a pod is ready."""
    said = pod["status"].get("conditions", ())
    return ("Ready", "True") in {(one["type"], one["status"]) for one in said}


def is_selected(item: Json, selector: str) -> bool:
    """Whether an object has a label, or a label with a value."""
    key, sign, value = selector.partition("=")
    labels = item["metadata"].get("labels", {})
    return not key or (labels.get(key) == value if sign else key in labels)


def fits(daemons: Json, node: Json) -> bool:
    """Whether a DaemonSet has a pod on a node; of expressions In alone is known here."""
    spec = daemons["spec"]["template"]["spec"]
    if node["status"]["nodeInfo"]["operatingSystem"] != spec["nodeSelector"]["kubernetes.io/os"]:
        return False
    affinity = spec.get("affinity")
    if affinity is None:
        return True
    required = affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return any(_fits_term(term, node) for term in required["nodeSelectorTerms"])


def _fits_term(term: Json, node: Json) -> bool:
    labels = node["metadata"].get("labels", {})
    for one in term.get("matchExpressions", ()):
        assert one["operator"] == "In"
        if labels.get(one["key"]) not in one["values"]:
            return False
    for one in term.get("matchFields", ()):
        assert (one["key"], len(one["values"])) == ("metadata.name", 1)
        if (node["metadata"]["name"] in one["values"]) != (one["operator"] == "In"):
            return False
    return True


def make_pod(daemons: Json, node: Json) -> Json:
    """A pod as the controller makes it: nothing has been reported yet."""
    template, name = daemons["spec"]["template"], node["metadata"]["name"]
    fields = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [fields]}}
    metadata = {"name": f"netprobe-{name}", "labels": template["metadata"]["labels"]}
    spec = {**template["spec"], "nodeName": name, "affinity": {"nodeAffinity": required}}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def make_node(name: str, address: str, *roles: str, **changes: Any) -> Json:
    """A node that is ready."""
    labels = {f"node-role.kubernetes.io/{role}": "" for role in roles}
    ready = {"type": "Ready", "status": "True", **changes.pop("ready", {})}
    info = {"operatingSystem": "linux", "architecture": "amd64", **changes.pop("info", {})}
    return {
        "kind": "Node", "apiVersion": "v1",
        "metadata": {"name": name, "labels": {**labels, **changes.pop("labels", {})}},
        "spec": changes,
        "status": {"addresses": [{"type": "InternalIP", "address": address}],
                   "conditions": [ready], "nodeInfo": info},
    }  # fmt: skip


class _ApiHandler(BaseHTTPRequestHandler):
    """Answers one connection. ``api``: set by ``serving``."""

    protocol_version = "HTTP/1.1"
    api: Api

    def answer_call(self) -> None:
        """Answer one call, or end the connection where the API is gone."""
        body = b"".join(self._read_body())
        split, api = urlsplit(self.path), self.api
        query = {key: values[0] for key, values in parse_qs(split.query).items()}
        api.calls.append((self.command, split.path))
        hangs = api.hangs_at(self.command, split.path) and api.ended.wait()
        if hangs or api.gone_at(self.command, split.path):
            self.close_connection = True
            return
        code = 200
        try:
            found = api.answer(self.command, split.path, query, body)
        except ApiError as error:
            found, code = error.answer, error.answer["code"]
        self._send(code, json.dumps(found).encode())

    def _send(self, code: int, data: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _read_body(self) -> Iterator[bytes]:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            yield self.rfile.read(int(self.headers.get("Content-Length", 0)))
            return
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    do_GET = do_POST = do_DELETE = answer_call

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextlib.contextmanager
def serving(api: Api, folder: Path) -> Iterator[Path]:
    """Serve it, and give a kubeconfig for it."""
    handler = type("Handler", (_ApiHandler,), {"api": api})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield write_kubeconfig(folder, server.server_port)
    finally:
        api.ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def write_kubeconfig(folder: Path, port: int) -> Path:
    """Write a kubeconfig for an API at a port."""
    path = folder / "kubeconfig"
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "admin", "user": {"token": "secret"}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "admin"}}],
    }))  # fmt: skip
    return path
