"""A real API server of a cluster, with etcd and the controllers that make pods of DaemonSets and
empty namespaces.

They are no part of netprobe, nor installed by it: ``NETPROBE_KUBERNETES`` names a folder that has
them, or they are on PATH; elsewhere these tests are skipped.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import ssl
import subprocess
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import httpx
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.cluster.kubelets import KUBECTL
from tests.needs import skip
from tests.patience import PATIENCE_S, wait_until
from tests.ports import free_port

Json = dict[str, Any]
FOLDER = "NETPROBE_KUBERNETES"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
CONTROLLERS = "daemonset,namespace,serviceaccount"
HERE = "127.0.0.1"
ADMIN, SCHEDULER = "admin", "scheduler"
# Only what ends is noted, once for each call.
AUDIT = {
    "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}  # fmt: skip
ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
RBAC = "/apis/rbac.authorization.k8s.io/v1"


def find_program(name: str) -> str | None:
    """Where one of the cluster's programs is."""
    return shutil.which(name, path=os.environ.get(FOLDER, "")) or shutil.which(name)


def require_programs() -> None:
    """Skip the test that runs where one of them is missing."""
    lacking = [name for name in PROGRAMS if find_program(name) is None]
    if lacking:
        skip(f"no {', '.join(lacking)} here", f"{FOLDER}=FOLDER, which has them")


class RealCluster:
    """One API server on loopback, and who may ask it. ``nodes``: the names of its kubelets."""

    def __init__(self, folder: Path, nodes: Collection[str]) -> None:
        require_programs()
        self.folder = folder
        self.port = free_port()
        self._etcd = f"http://{HERE}:{free_port()}"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._write_keys(nodes)
        self._context: ssl.SSLContext | None = None
        self._counted = 0

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.callback(self.close)
            self._start_etcd()
            self.start_api()
            kubeconfig = self.write_kubeconfig(ADMIN)
            self._start(
                "kube-controller-manager", f"--kubeconfig={kubeconfig}", "--port=0",
                f"--controllers={CONTROLLERS}", "--leader-elect=false",
                f"--bind-address={HERE}", f"--secure-port={free_port()}",
                f"--cert-dir={self.folder / 'controllers'}",
            )  # fmt: skip
            wait_until(lambda: self.knows(f"{ACCOUNTS}/default"), "the controllers")
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all of it."""
        for name in list(self._running):
            self._stop(name)

    def start_api(self) -> None:
        """Start the API server, and wait until it answers."""
        key, certificates = self.folder / "accounts.key", self.folder / "api"
        self._start(
            "kube-apiserver", f"--etcd-servers={self._etcd}", f"--secure-port={self.port}",
            f"--bind-address={HERE}", "--advertise-address=192.0.2.1",
            "--endpoint-reconciler-type=none", f"--cert-dir={certificates}",
            "--service-cluster-ip-range=198.51.100.0/24", "--authorization-mode=Node,RBAC",
            "--enable-admission-plugins=NodeRestriction",
            # No node has such an address: where logs are asked for, nobody is dialled.
            "--kubelet-preferred-address-types=Hostname",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
            "--service-account-issuer=https://cluster.test",
            f"--audit-policy-file={self.folder / 'audit.json'}",
            f"--audit-log-path={self._audit}",
        )  # fmt: skip
        wait_until(lambda: self._certificate.exists() and self.knows("/readyz"), "the API server")

    def stop_api(self) -> None:
        """Kill the API server: what it has stored stays."""
        self._stop("kube-apiserver")

    def knows(self, path: str) -> bool:
        """Whether something is there, and the API server, too."""
        try:
            return self.call("GET", path).status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def call(
        self, method: str, path: str, body: Any = None, *, user: str = ADMIN,
        kind: str = "application/json", client: httpx.Client | None = None, **query: str,
    ) -> httpx.Response:  # fmt: skip
        """Make one call as a user, whatever is answered."""
        if client is None:
            with self.open_client() as opened:
                return self.call(method, path, body, user=user, kind=kind, client=opened, **query)
        data = None if body is None else json.dumps(body).encode()
        return client.request(
            method, path, content=data, params=query, headers=self.head(user, kind)
        )

    def ask(self, method: str, path: str, body: Any = None, **options: Any) -> Json:
        """Make one call that must be answered well, and give the object."""
        answer = self.call(method, path, body, **options)
        assert answer.is_success, (method, path, answer.text)
        found: Json = answer.json()
        return found

    def open_client(self) -> httpx.Client:
        """Make a client that keeps its connections until it is closed."""
        if self._context is None:
            self._context = ssl.create_default_context(cafile=self._certificate)
        return httpx.Client(
            base_url=f"https://{HERE}:{self.port}", verify=self._context, timeout=PATIENCE_S,
            trust_env=False,
        )  # fmt: skip

    def head(self, user: str, kind: str = "application/json") -> dict[str, str]:
        """What goes with a call of a user."""
        return {"Authorization": f"Bearer {self._tokens[user]}", "Content-Type": kind}

    def write_kubeconfig(self, user: str) -> Path:
        """Write what kubectl needs to ask as a user."""
        path = self.folder / f"{user}.kubeconfig"
        cluster = {"server": f"https://{HERE}:{self.port}",
                   "certificate-authority": str(self._certificate)}  # fmt: skip
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": self._tokens[user]}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user}}],
        }))  # fmt: skip
        return path

    def add_account(self, name: str, rules: Sequence[Mapping[str, Any]]) -> Path:
        """Make a ServiceAccount that may do what the rules of a ClusterRole say; give its
        kubeconfig."""
        meta = {"metadata": {"name": name}}
        self.ask("POST", ACCOUNTS, meta)
        self.ask("POST", f"{RBAC}/clusterroles", {**meta, "rules": rules})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        who = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        self.ask(
            "POST", f"{RBAC}/clusterrolebindings", {**meta, "roleRef": role, "subjects": [who]}
        )
        made = self.ask("POST", f"{ACCOUNTS}/{name}/token", {"spec": {}})
        self._tokens[name] = made["status"]["token"]
        return self.write_kubeconfig(name)

    def count_calls(self, name: str) -> Counter[str]:
        """Count a ServiceAccount's calls since the last count, by what they were."""
        user = f"system:serviceaccount:default:{name}"
        with self._audit.open("rb") as log:
            log.seek(self._counted)
            events = [one for one in map(json.loads, log) if one["user"]["username"] == user]
            self._counted = log.tell()
        return Counter(
            f"{one['verb']} {_name_object(one)}" for one in events
            if one["stage"] == "ResponseComplete"
        )  # fmt: skip

    @property
    def _audit(self) -> Path:
        return self.folder / "audit.log"

    @property
    def _certificate(self) -> Path:
        return self.folder / "api" / "apiserver.crt"

    def _write_keys(self, nodes: Collection[str]) -> None:
        users = {ADMIN: ("root", "system:masters"), SCHEDULER: ("system:kube-scheduler", "")}
        users |= {name: (f"system:node:{name}", "system:nodes") for name in nodes}
        self._tokens = {name: f"token-of-{name}" for name in users}
        self.folder.mkdir(exist_ok=True)
        lines = (
            f'{self._tokens[name]},{user},{user},"{group}"\n'
            for name, (user, group) in users.items()
        )
        (self.folder / "tokens.csv").write_text("".join(lines))
        (self.folder / "audit.json").write_text(json.dumps(AUDIT))
        key = rsa.generate_private_key(65537, 2048).private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )  # fmt: skip
        (self.folder / "accounts.key").write_bytes(key)

    def _start_etcd(self) -> None:
        peer = f"http://{HERE}:{free_port()}"
        self._start(
            "etcd", f"--data-dir={self.folder / 'etcd'}", f"--listen-client-urls={self._etcd}",
            f"--advertise-client-urls={self._etcd}", f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
        )  # fmt: skip

    def _start(self, name: str, *words: str) -> None:
        program = find_program(name)
        assert program is not None
        with (self.folder / f"{name}.log").open("ab") as log:
            self._running[name] = subprocess.Popen(
                ["setpriv", "--pdeathsig=KILL", program, *words], cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def _stop(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.wait(PATIENCE_S)


def _name_object(event: Mapping[str, Any]) -> str:
    """Name what a call was about."""
    about = event.get("objectRef")
    if about is None:
        return str(event["requestURI"])
    return "/".join(filter(None, (about["resource"], about.get("subresource", ""))))


def start_plugin(
    words: Sequence[str], cwd: Path, variables: Mapping[str, str], **streams: Any
) -> subprocess.Popen[str]:
    """Start ``kubectl netprobe WORDS`` with the client of the server's version where it is beside
    it, else with that of the package index."""
    found = shutil.which("kubectl", path=os.environ.get(FOLDER, ""))
    kubectl = KUBECTL if found is None else Path(found)
    path = f"{kubectl.parent}:{KUBECTL.parent}:{os.environ['PATH']}"
    return subprocess.Popen(
        [kubectl, "netprobe", *words], cwd=cwd, env={**variables, "PATH": path}, text=True,
        start_new_session=True, **streams,
    )  # fmt: skip


@contextlib.contextmanager
def starting(folder: Path, nodes: Sequence[Json]) -> Iterator[RealCluster]:
    """Start a cluster that has these nodes."""
    with RealCluster(folder, [one["metadata"]["name"] for one in nodes]) as cluster:
        with cluster.open_client() as client:
            for node in nodes:
                cluster.ask("POST", "/api/v1/nodes", node, client=client)
        yield cluster
