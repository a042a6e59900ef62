"""A lab of live services: worker - router - edge (HAProxy as all of them), proxy (tinyproxy)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.konnectivity.pki import authority, issue
from tests.lab.netlab import Lab, wait_for

HERE = Path(__file__).parent
EDGE, EDGE6 = "10.88.2.2", "fd88:2::2"
PROXY = "10.88.3.2"
BOOT = "10.88.4.2"
KONNECTIVITY = "konnectivity-c1.apps.lab.test"
IGNITION = "ignition-c1.apps.lab.test"
PASSWORD = "s3cret-of-the-proxy"
OPEN_PROXY, ASKING_PROXY, TLS_PROXY = 3128, 3129, 3130
# A proxy that is spoken to in TLS, as https:// in its URL asks for.
TLS_PROXY_CONFIG = f"""
defaults
    mode tcp
    timeout connect 2s
    timeout client 20s
    timeout server 20s
frontend proxy
    bind :{TLS_PROXY} ssl crt @FOLDER@/other.pem
    default_backend proxy
backend proxy
    server proxy 127.0.0.1:{OPEN_PROXY}
"""
PORTS = (6443, 2379, 10250, 5000, 5001, 6444, 22623, 22624, 8081, 7443, 443)


class World(Lab):
    """Builds it; ``run`` runs netprobe against it."""

    def build(self) -> None:
        """Build all of it."""
        router = self.router("router", "10.88.0.1", "fd88::1")
        self.host("worker", router, "10.88.1.2", "fd88:1::2")
        self.host("edge", router, EDGE, EDGE6)
        self.host("proxy", router, PROXY)
        self.host("boot", router, BOOT)
        self.wait_until_ready()
        self._start_services()
        self._start_proxies()

    def close(self) -> None:
        """Remove the lab and the names that it gave the proxy."""
        if "proxy" in self.namespaces:
            shutil.rmtree(self._names_folder, ignore_errors=True)
        super().close()

    @property
    def _names_folder(self) -> Path:
        return Path("/etc/netns", self["proxy"].netns)

    def run(
        self,
        *requirements: Mapping[str, Any],
        proxy: Mapping[str, Any] | None = None,
        to: Mapping[str, Any] | None = None,
        worker: Mapping[str, Any] | None = None,
        sets: tuple[str, ...] = (),
        matrix: str | None = None,
    ) -> Finished:
        """Run from the worker to ``edge`` (role service); ``to``, ``worker``: their keys."""
        edge = {"address": EDGE, "roles": ["service", "ocp-router"], "vantage": "none"}
        hosts: dict[str, Any] = {
            "worker": {
                "address": "10.88.1.2",
                "roles": ["worker"],
                "vantage": {"command": self["worker"].enter},
                **({"proxy": dict(proxy)} if proxy else {}),
                **(worker or {}),
            },
            "edge": edge | dict(to or {}),
        }
        document = {"schema": "netprobe.inventory/1", "hosts": hosts}
        inventory = self.write("inventory.yaml", yaml.safe_dump(document))
        chosen = matrix or str(self.write("live.yaml", yaml.safe_dump(_matrix(requirements))))
        words = [part for one in sets for part in ("--set", one)]
        return netprobe("run", "-m", chosen, "-i", str(inventory), "-o", "json", *words)

    def _start_services(self) -> None:
        folder = self.folder
        of = {
            "kube-client": authority(OU="openshift", CN="kube-apiserver-client-ca"),
            "etcd": authority(CN="etcd-signer"),
            "signer": authority(OU="kubernetes", CN="konnectivity-signer"),
            "root": authority(OU="openshift", CN="root-ca"),
            "router": authority(CN="ingress-operator@1700000000"),
        }
        for name, one in of.items():
            (folder / f"{name}.crt").write_bytes(one.pem())
        kube = ["kubernetes", "kubernetes.default.svc", "api.lab.test"]
        server = "konnectivity-server"
        issue(folder, "kas.pem", of["root"], kube, CN="kubernetes")
        issue(folder, "etcd.pem", of["etcd"], [EDGE], CN="master-0")
        node = "system:node:node-1"
        issue(folder, "kubelet.pem", of["root"], ["node-1"], O="system:nodes", CN=node)
        issue(folder, "other.pem", of["root"], ["other.lab.test"], CN="other.lab.test")
        issue(folder, "router.pem", of["router"], ["*.apps.lab.test"], CN="*.apps.lab.test")
        names = [server, f"{server}.clusters-c1.svc", KONNECTIVITY]
        issue(folder, "konnectivity.pem", of["signer"], names, O="kubernetes", CN=server)
        names = ["ignition-server", IGNITION]
        issue(folder, "ignition.pem", of["root"], names, O="openshift", CN="ignition-server")
        config = (HERE / "live.cfg").read_text().replace("@FOLDER@", str(folder))
        path = self.write("live.cfg", config)
        edge = self["edge"]
        edge.spawn("haproxy", "-db", "-f", str(path), stderr=subprocess.DEVNULL)
        edge.wait_until_listening(*(f"tcp *:{port}" for port in PORTS))

    def _start_proxies(self) -> None:
        proxy = self["proxy"]
        self._names_folder.mkdir(parents=True)
        names = f"{EDGE} {KONNECTIVITY} {IGNITION} api.lab.test\n"
        (self._names_folder / "hosts").write_text(f"127.0.0.1 localhost\n{names}")
        allowed = "".join(f"ConnectPort {port}\n" for port in (443, 6443, 9999, 7777))
        for port, more in ((OPEN_PROXY, ""), (ASKING_PROXY, f"BasicAuth agent {PASSWORD}\n")):
            text = f"Port {port}\nTimeout 30\nMaxClients 50\n{allowed}{more}"
            path = self.write(f"tinyproxy-{port}.conf", text)
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            proxy.spawn("tinyproxy", "-d", "-c", str(path), **quiet)
        config = TLS_PROXY_CONFIG.replace("@FOLDER@", str(self.folder))
        path = self.write("tls-proxy.cfg", config)
        proxy.spawn("haproxy", "-db", "-f", str(path), stderr=subprocess.DEVNULL)
        for port in (OPEN_PROXY, ASKING_PROXY, TLS_PROXY):
            wait_for(lambda p=port: any(f":{p}" in one for one in proxy.listening()), "tinyproxy")


def _matrix(requirements: tuple[Mapping[str, Any], ...]) -> dict[str, Any]:
    ends = {"from": "worker", "to": "service"}
    return {
        "schema": "netprobe.matrix/1",
        "name": "live",
        "title": "Live services",
        "roles": {"worker": {}, "service": {}, "ocp-router": {}},
        "requirements": [
            {"id": f"{one.get('probe')}-{one['tcp'][0]}", **ends, **one} for one in requirements
        ],
    }
