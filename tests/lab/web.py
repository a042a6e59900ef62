"""A lab of web servers: two workers - router with a captive portal - web; a squid on the way."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.konnectivity.pki import authority, issue
from tests.lab.netlab import Lab, run, wait_for

HERE = Path(__file__).parent
WEB, SQUID, PORTAL = "10.89.2.2", "10.89.3.2", "10.89.0.1"
WORKERS = {"worker": "10.89.1.2", "guest": "10.89.1.3"}
PORTS = (5001, 6443, 9001, 9002, 9003, 9004, 9005, 9006)
HTTP2, HTTP2_PLAIN, PYTHON = 8443, 8080, 9007
SQUID_PORT = 3128
PASSWORD = "s3cret-of-squid"
PORTAL_CONFIG = """
defaults
    mode http
    timeout client 20s
frontend portal
    bind :8880
    http-request redirect location http://portal.lab.test/login?back=x code 302
"""


class WebWorld(Lab):
    """Builds it; ``run`` runs netprobe against it, and ``curl`` says what is true."""

    def build(self) -> None:
        """Build all of it."""
        router = self.router("router", PORTAL)
        for name, address in WORKERS.items():
            self.host(name, router, address)
        self.host("web", router, WEB)
        self.host("squid", router, SQUID)
        self.wait_until_ready()
        issue(self.folder, "web.pem", authority(CN="lab"), ["web.lab.test"], CN="web.lab.test")
        self._start_web()
        self._start_squid()
        self._start_portal()

    def _start_web(self) -> None:
        web, quiet = self["web"], {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        path = self.write(
            "web.cfg", (HERE / "web.cfg").read_text().replace("@FOLDER@", str(self.folder))
        )
        web.spawn("haproxy", "-db", "-f", str(path), **quiet)
        root = self.folder / "root"
        (root / "api").mkdir(parents=True)
        (root / "api/health").write_text('{"status":"up"}')
        pem = str(self.folder / "web.pem")
        web.spawn("nghttpd", "-d", str(root), str(HTTP2), pem, pem, **quiet)
        web.spawn("nghttpd", "--no-tls", "-d", str(root), str(HTTP2_PLAIN), **quiet)
        web.spawn(sys.executable, "-m", "http.server", "-d", str(root), str(PYTHON), **quiet)
        for port in (*PORTS, HTTP2, HTTP2_PLAIN, PYTHON):
            wait_for(lambda p=port: any(one.endswith(f":{p}") for one in web.listening()), "web")

    def _start_squid(self) -> None:
        """A squid that wants credentials, knows ports and denies one of them."""
        folder = self.folder / "squid"
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
        # Squid's helpers run as another user.
        self.folder.chmod(0o755)
        users = folder / "users"
        crypted = run("openssl", "passwd", "-apr1", PASSWORD).stdout.strip()
        users.write_text(f"agent:{crypted}\n")
        users.chmod(0o644)
        config = folder / "squid.conf"
        config.write_text(
            f"http_port {SQUID_PORT}\npid_filename {folder}/pid\ncache_log {folder}/cache.log\n"
            f"access_log none\ncache deny all\ncoredump_dir {folder}\n"
            f"auth_param basic program /usr/lib/squid/basic_ncsa_auth {users}\n"
            "auth_param basic realm lab\nacl known proxy_auth REQUIRED\nacl denied port 9006 9002\n"
            "http_access deny denied\nhttp_access allow known\nhttp_access deny all\n"
            "connect_timeout 3 seconds\nshutdown_lifetime 1 seconds\n"
            "netdb_filename none\npinger_enable off\n"
        )
        squid = self["squid"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        squid.spawn_daemon("squid", "-N", "-f", str(config), "-n", "webn", **quiet)
        wait_for(lambda: any(f":{SQUID_PORT}" in one for one in squid.listening()), "squid")

    def _start_portal(self) -> None:
        """The router sends what the guest says to the registry to its own portal."""
        router = self["router"]
        path = self.write("portal.cfg", PORTAL_CONFIG)
        router.spawn("haproxy", "-db", "-f", str(path), stderr=subprocess.DEVNULL)
        wait_for(lambda: any(":8880" in one for one in router.listening()), "portal")
        guest = f"ip saddr {WORKERS['guest']} tcp dport 5001"
        hook = "type nat hook prerouting priority dstnat; policy accept"
        router.nft(
            f"table ip portal {{\nchain in {{\n{hook}\n{guest} dnat to {PORTAL}:8880\n}}\n}}"
        )

    def start_hostile(self, first: int) -> None:
        """Start servers that mean no good, from this port on."""
        web = self["web"]
        web.spawn(sys.executable, str(HERE / "hostile_web.py"), str(first))
        wait_for(lambda: any(one.endswith(f":{first + 5}") for one in web.listening()), "hostile")

    def curl(self, worker: str, url: str, *more: str) -> dict[str, Any]:
        """What curl sees: the status, the version of HTTP, where a redirect leads."""
        words = ("curl", "-sk", "-m", "5", "-o", "/dev/null", "-w", "%{json}", *more, url)
        found: dict[str, Any] = json.loads(self[worker].run(*words, check=False))
        return found

    def run(
        self,
        *requirements: Mapping[str, Any],
        worker: str = "worker",
        proxy: str | None = None,
        words: tuple[str, ...] = (),
    ) -> Finished:
        """Ask these services of ``web`` from a worker."""
        url = f"http://{proxy or ''}{SQUID}:{SQUID_PORT}"
        proxied = {} if proxy is None else {"proxy": {"http_proxy": url, "https_proxy": url}}
        vantage = {"command": self[worker].enter}
        hosts = {
            worker: {
                "address": WORKERS[worker],
                "roles": ["worker"],
                "vantage": vantage,
                **proxied,
            },
            "web": {"address": WEB, "roles": ["service"], "vantage": "none"},
        }
        ends = {"from": "worker", "to": "service"}
        matrix = {
            "schema": "netprobe.matrix/1",
            "name": "web",
            "title": "Web servers",
            "roles": {"worker": {}, "service": {}},
            "requirements": [
                {"id": f"r{index}", **ends, **one} for index, one in enumerate(requirements)
            ],
        }
        inventory = {"schema": "netprobe.inventory/1", "hosts": hosts}
        given = self.write("inventory.yaml", yaml.safe_dump(inventory))
        chosen = self.write("web.yaml", yaml.safe_dump(matrix))
        return netprobe("run", "-m", str(chosen), "-i", str(given), "-o", "json", "--live", *words)
