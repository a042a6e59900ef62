"""A lab of name servers: BIND and dnsmasq that are right, wrong, stale, deaf, and split."""

from __future__ import annotations

import itertools
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.netlab import Lab, Namespace
from tests.lab.services import place

ROUTER = "10.91.0.1"
WORKERS = {"w1": "10.91.1.1", "w2": "10.91.1.2"}
BIND, OLD_BIND, MASQ, WILD = "10.91.2.1", "10.91.2.2", "10.91.2.3", "10.91.2.4"
NOBODY = "10.91.2.99"
API, OTHER_API, OLD_API, APPS = "10.91.5.5", "10.91.5.6", "10.91.5.4", "10.91.6.6"
SIX = "fd00:91::5"
ZONE = "c1.lab.test"
# BIND takes no more records of one name than these: an answer of 1,644 bytes at least.
BIG = tuple(f"10.92.0.{number}" for number in range(1, 101))

_NAMED = """
options {{
    directory "{folder}"; pid-file none; session-keyfile none; listen-on-v6 {{ none; }};
    listen-on port 53 {{ {address}; }}; recursion yes; allow-query {{ any; }};
    allow-recursion {{ any; }}; dnssec-validation no; max-udp-size 4096; notify no;
}};
controls {{ }};
{views}
"""
_ZONES = """
    zone "{zone}" {{ type primary; file "{file}"; }};
    zone "closed.test" {{ type primary; file "{file}"; allow-query {{ none; }}; }};
    zone "broken.test" {{ type primary; file "{folder}/there-is-no-such-file"; }};
    zone "." {{ type hint; file "/dev/null"; }};
"""


class NameWorld(Lab):
    """Two workers and four name servers around one router; ``rules`` are the router's firewall."""

    def __init__(self) -> None:
        super().__init__()
        self._numbers = itertools.count(1)

    def close(self) -> None:
        """Remove everything, the resolv.conf files of the workers too."""
        for name in WORKERS:
            if name in self.namespaces:
                shutil.rmtree(self.resolv_conf(name).parent, ignore_errors=True)
        super().close()

    def resolv_conf(self, worker: str) -> Path:
        """Where ``ip netns exec`` takes the worker's resolv.conf from."""
        return Path("/etc/netns", self[worker].netns, "resolv.conf")

    def set_resolvers(self, worker: str, *servers: str) -> None:
        """Write the worker's resolv.conf."""
        path = self.resolv_conf(worker)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"nameserver {server}\n" for server in servers))

    def set_hosts(self, worker: str, *lines: str) -> None:
        """Write the worker's /etc/hosts."""
        self.resolv_conf(worker).with_name("hosts").write_text("".join(f"{one}\n" for one in lines))

    def build(self) -> None:
        """Build all of it."""
        router = self.router("r", ROUTER)
        for name, address in WORKERS.items():
            self.host(name, router, address)
            self.set_resolvers(name, BIND)
        self.folder.chmod(0o755)
        self._bind(self.host("bind", router, BIND), serial=7, api=API, split=True)
        self._bind(self.host("oldbind", router, OLD_BIND), serial=6, api=OLD_API)
        self._masq(
            self.host("masq", router, MASQ),
            f"--local=/{ZONE}/",
            f"--host-record=api.{ZONE},{API}",
            *(f"--host-record=big.{ZONE},{one}" for one in BIG),
            "--edns-packet-max=1232",
            f"--server=/silent.test/{NOBODY}",
        )
        self._masq(self.host("wild", router, WILD), f"--address=/{ZONE}/{APPS}")
        # Packets to nobody vanish.
        router.nft(
            "table ip nobody { chain f { type filter hook prerouting priority 0; "
            f"ip daddr {NOBODY} drop; }}\n}}"
        )

    def _bind(self, host: Namespace, *, serial: int, api: str, split: bool = False) -> None:
        folder = self.folder / host.name
        folder.mkdir()
        folder.chmod(0o777)
        views = [("other", "any", OTHER_API if split else api)]
        if split:
            views.insert(0, ("w1", WORKERS["w1"], api))
        blocks = ""
        for view, clients, split_api in views:
            file = folder / f"{view}.zone"
            file.write_text(_write_zone(serial, api, split_api))
            zones = _ZONES.format(zone=ZONE, file=file, folder=folder)
            blocks += f'view "{view}" {{ match-clients {{ {clients}; }};{zones}}};\n'
        config = folder / "named.conf"
        config.write_text(_NAMED.format(folder=folder, address=host.addresses[0], views=blocks))
        log = (folder / "log").open("w")
        host.spawn("named", "-g", "-4", "-c", str(config), stdout=log, stderr=log)
        log.close()
        host.wait_until_listening(*(place(one, host.addresses[0], 53) for one in ("tcp", "udp")))

    def _masq(self, host: Namespace, *options: str) -> None:
        host.spawn_daemon(
            "dnsmasq", "--keep-in-foreground", "--user=root", "--pid-file=", "--log-facility=-",
            "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--bind-interfaces",
            f"--listen-address={host.addresses[0]}", *options, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        host.wait_until_listening(*(place(one, host.addresses[0], 53) for one in ("tcp", "udp")))

    @contextmanager
    def rules(self, rule: str) -> Iterator[None]:
        """A rule of the router's firewall, before it puts fragments together."""
        chain = f"chain f {{ type filter hook prerouting priority -450; {rule}; }}"
        self["r"].nft(f"table ip test {{ {chain}\n}}")
        try:
            yield
        finally:
            self["r"].nft("delete table ip test")

    def run_names(
        self,
        servers: Mapping[str, str],
        settings: Mapping[str, str],
        *words: str,
        workers: tuple[str, ...] = ("w1",),
        output: str = "json",
    ) -> Finished:
        """Run the rows of name servers of hypershift-hcp, from these workers to these servers."""
        inventory = self.write_inventory(servers, settings, workers)
        return netprobe(
            "run", "-m", "hypershift-hcp", "-i", str(inventory), "--only", "worker-dns-udp",
            "--only", "worker-dns-tcp", "-o", output, *words,
        )  # fmt: skip

    def write_inventory(
        self, servers: Mapping[str, str], settings: Mapping[str, str], workers: tuple[str, ...]
    ) -> Path:
        """Write an inventory of these workers, and of servers by name and address."""
        document: dict[str, Any] = {
            "schema": "netprobe.inventory/1",
            "settings": dict(settings),
            "hosts": {
                **{
                    name: {
                        "address": WORKERS[name],
                        "roles": ["worker"],
                        "vantage": {"command": self[name].enter},
                    }
                    for name in workers
                },
                **{
                    name: {"address": address, "roles": ["dns"], "vantage": "none"}
                    for name, address in servers.items()
                },
                "api": {"address": API, "roles": ["hcp"], "vantage": "none"},
            },
        }
        return self.write(
            f"inventory-{next(self._numbers)}.yaml", yaml.safe_dump(document, sort_keys=False)
        )

    def dig(self, worker: str, server: str, name: str, *words: str) -> str:
        """What dig, which knows nothing of netprobe, prints from a worker."""
        return self[worker].run(
            "dig", f"@{server}", name, "+tries=1", "+time=2", *words, check=False
        )


def _write_zone(serial: int, api: str, split: str) -> str:
    records = [
        "$TTL 60",
        f"@ IN SOA ns.lab.test. root.lab.test. {serial} 60 60 60 60",
        "@ IN NS ns.lab.test.",
        f"api IN A {api}",
        f"split IN A {split}",
        "empty IN TXT none",
        f"six IN AAAA {SIX}",
        f"*.apps IN A {APPS}",
        *(f"big IN A {one}" for one in BIG),
    ]
    return "\n".join(records) + "\n"
