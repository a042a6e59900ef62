"""The lab: worker - router - edge, with HAProxy, gRPC, proxies and DNS on the edge, all real parts.

The workers' agents run as nobody. Each firewall rule is about one port of its own, so that all
situations can be looked at at once.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from tests.lab.cli import Finished, netprobe
from tests.lab.konnectivity import pki
from tests.lab.netlab import Lab, Namespace, run, unprivileged, wait_for
from tests.lab.netlab import sweep as sweep_namespaces
from tests.lab.services import shift_clock

HERE = Path(__file__).parent
NAME = "konn.apps.lab.test"
ZONE = "lab.test"
WORKER4, WORKER6 = "10.77.1.2", "fd77:1::2"
DEAF4, DEAF6 = "10.77.1.3", "fd77:1::3"
SECOND4, SECOND6 = "10.77.1.4", "fd77:1::4"
THIRD4, THIRD6 = "10.77.1.5", "fd77:1::5"
ROUTER4, ROUTER6 = "10.77.0.1", "fd77::1"
EDGE4, EDGE6 = "10.77.2.2", "fd77:2::2"
DEAD4, DEAD6 = "10.77.2.9", "fd77:2::9"
NOWHERE4, NOWHERE6 = "198.18.9.9", "fd99::9"
PASSWORD = "s3cret-of-the-proxy"
RESOLVERS = Path("/etc/netns")
# The first copies of a hello's second segment are lost, for longer than a router waits (5 s). The
# kernel sends it again at once (tail loss probe), then 0.2, 0.6, 1.4, 3.0 and 6.2 s later.
LATE_SEGMENTS = 6

# Of resolv.conf; without them a resolver waits for 10 s.
SHORT = "options timeout:1 attempts:1"
_NUMBERS = itertools.count(1)

# On the router, in the way between; the port says which situation it makes.
ROUTER_RULES = f"""
table inet situations {{
  set late {{ type inet_service; flags dynamic; }}
  chain forward {{
    type filter hook forward priority 0;
    tcp dport 20001 drop
    tcp dport 20002 reject with tcp reset
    tcp dport 20003 reject with icmpx type admin-prohibited
    tcp dport 20004 reject with icmpx type host-unreachable
    tcp dport 20005 meta length > 150 reject with tcp reset
    tcp dport 20006 meta length > 150 drop
    tcp dport 20007 meta length > 150 reject with icmpx type admin-prohibited
    tcp sport 20008 meta length > 1000 drop
    tcp dport 20009 meta length > 1400 drop
    tcp sport 20010 meta length > 1400 drop
    tcp dport 20011 meta length > 1000 drop
    ip saddr {{ {WORKER4}, {SECOND4} }} tcp dport 20012 meta length > 1400 drop
    tcp dport 20015 ct state new tcp flags & (syn|ack) != syn drop
    tcp dport 20015 ct state invalid drop
    tcp dport 20016 ct state new tcp flags & (syn|ack) != syn reject with tcp reset
    tcp dport 20016 ct state invalid reject with tcp reset
    tcp sport 20017 meta length > 100 drop
    tcp dport 20034 numgen random mod 100 < 40 drop
    tcp sport 20035 numgen random mod 100 < 40 drop
    tcp dport 20036 numgen random mod 100 < 4 drop
    tcp dport 20020 reject with icmpx type port-unreachable
    tcp dport 20021 meta length > 600 reject with tcp reset
    ip6 daddr {EDGE6} tcp dport 20022 drop
    tcp dport 20023 reject with icmpx type no-route
    tcp dport 20443 meta length 600-1400 \
      add @late {{ tcp sport limit rate 1/hour burst {LATE_SEGMENTS} packets }} drop
  }}
  chain balance {{
    type nat hook prerouting priority -100;
    tcp dport 18130 dnat ip to numgen inc mod 3 map \
      {{ 0 : {EDGE4} . 8091, 1 : {EDGE4} . 8091, 2 : {EDGE4} . 18120 }}
    tcp dport 18130 dnat ip6 to numgen inc mod 3 map \
      {{ 0 : {EDGE6} . 8091, 1 : {EDGE6} . 8091, 2 : {EDGE6} . 18120 }}
  }}
}}
"""
EDGE_RULES = f"""
table inet edge {{
  chain output {{ type filter hook output priority 0; ip daddr 127.66.0.1 drop; }}
  chain input {{
    type filter hook input priority 0;
    ip saddr {DEAF4} meta l4proto {{ tcp, udp }} th dport 53 drop
    ip6 saddr {DEAF6} meta l4proto {{ tcp, udp }} th dport 53 drop
    tcp dport 20018 reject with icmpx type admin-prohibited
    tcp dport 18120 drop
  }}
}}
"""
WORKER_RULES = """
table inet own { chain output { type filter hook output priority 0; tcp dport 20019 drop; }; }
"""


class World(Lab):
    """The lab with everything running."""

    def __init__(self) -> None:
        super().__init__()
        self.prefix = f"nkn-{os.getpid()}-{next(_NUMBERS)}-"
        self._resolvers: list[Path] = []
        self._inventories = itertools.count(1)

    def build(self) -> None:
        """Build namespaces, certificates, rules and servers."""
        sweep()
        middle = self.router("mid", ROUTER4, ROUTER6)
        worker = self.host("worker", middle, WORKER4, WORKER6)
        deaf = self.host("deaf", middle, DEAF4, DEAF6)
        second = self.host("second", middle, SECOND4, SECOND6)
        third = self.host("third", middle, THIRD4, THIRD6)
        edge = self.host("edge", middle, EDGE4, EDGE6)
        # A neighbour that is not there, and addresses that the worker has no route to.
        device = f"v{len(self.namespaces)}"
        middle.ip(f"route add {DEAD4}/32 dev {device}", f"route add {DEAD6}/128 dev {device}")
        worker.ip(f"route add unreachable {NOWHERE4}/32", f"route add unreachable {NOWHERE6}/128")
        for namespace in self.namespaces.values():
            _wire_sized(namespace)
        middle.run(
            "sysctl", "-q", "-w", "net.netfilter.nf_conntrack_tcp_loose=0",
            "net.netfilter.nf_conntrack_tcp_timeout_established=6",
            "net.netfilter.nf_conntrack_tcp_timeout_unacknowledged=6",
        )  # fmt: skip
        # Real routers allow one error a second; here many situations share one worker.
        for machine in (middle, edge):
            machine.run("sysctl", "-q", "-w", "net.ipv4.icmp_ratelimit=0",
                        "net.ipv6.icmp.ratelimit=0")  # fmt: skip
        middle.nft(ROUTER_RULES)
        edge.nft(EDGE_RULES)
        worker.nft(WORKER_RULES)
        self._resolve_by(worker, EDGE4)
        self._resolve_by(second, EDGE4, f"{DEAD4} moved.apps.{ZONE}\n")
        self._resolve_by(deaf, EDGE4, options="")
        self._resolve_by(third, EDGE4)
        make_certificates(self.folder)
        self.folder.chmod(0o755)
        self._serve(edge)
        self.wait_until_ready()

    def close(self) -> None:
        super().close()
        for folder in self._resolvers:
            shutil.rmtree(folder)
        self._resolvers.clear()

    def _resolve_by(
        self, namespace: Namespace, server: str, hosts: str = "", options: str = SHORT
    ) -> None:
        """``ip netns exec`` shows a namespace its own resolv.conf and hosts."""
        folder = RESOLVERS / namespace.netns
        folder.mkdir(parents=True)
        text = f"nameserver {server}\n{options}\n"
        (folder / "resolv.conf").write_text(text)
        (folder / "hosts").write_text(f"127.0.0.1 localhost\n{hosts}")
        self._resolvers.append(folder)

    def _serve(self, edge: Namespace) -> None:
        quiet = {"stderr": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
        self.log = self.folder / "backends.log"
        with self.log.open("w") as log:
            edge.spawn(sys.executable, str(HERE / "backends.py"), stdout=log, stderr=log)
        config = self.folder / "edge.cfg"
        config.write_text((HERE / "edge.cfg").read_text().replace("@FOLDER@", str(self.folder)))
        with (self.folder / "haproxy.log").open("w") as log:
            edge.spawn("haproxy", "-f", str(config), "-db", stdout=log, stderr=log)
        self._dns(edge)
        tiny = self.folder / "tinyproxy.conf"
        tiny.write_text("Port 8888\nTimeout 30\nConnectPort 443\nMaxClients 50\n")
        edge.spawn("tinyproxy", "-d", "-c", str(tiny), **quiet)
        self._squid(edge)
        ports = ("8091", "443", "18098")
        edge.wait_until_listening(*(f"tcp *:{port}" for port in ports))
        edge.wait_until_listening("tcp *:3128")
        wait_for(lambda: "READY" in self.log.read_text(), "the gRPC servers")
        wait_for(lambda: any(":8888" in each for each in edge.listening()), "tinyproxy")

    def _dns(self, edge: Namespace) -> None:
        names = {
            NAME: (EDGE4, EDGE6),
            f"empty.apps.{ZONE}": (EDGE4, EDGE6),
            f"nobody.apps.{ZONE}": (EDGE4, EDGE6),
            # Its IPv6 address is dead, the other one not.
            f"half.apps.{ZONE}": (EDGE4, DEAD6),
            f"moved.apps.{ZONE}": (EDGE4, EDGE6),
            f"two.apps.{ZONE}": (EDGE4, DEAD4),
        }
        records = [f"--host-record={name},{v4},{v6}" for name, (v4, v6) in names.items()]
        records[-1] = f"--address=/two.apps.{ZONE}/{EDGE4}"
        records.append(f"--address=/two.apps.{ZONE}/{DEAD4}")
        edge.spawn_daemon(
            "dnsmasq", "--keep-in-foreground", "--user=root", "--pid-file=", "--log-facility=-",
            "--conf-file=/dev/null", "--no-hosts", "--no-resolv", "--bind-interfaces",
            f"--listen-address={EDGE4}", f"--listen-address={EDGE6}", f"--local=/{ZONE}/",
            *records, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def _squid(self, edge: Namespace) -> None:
        folder = self.folder / "squid"
        folder.mkdir(mode=0o777)
        folder.chmod(0o777)
        users = folder / "users"
        crypted = run("openssl", "passwd", "-apr1", PASSWORD).stdout.strip()
        users.write_text(f"agent:{crypted}\n")
        users.chmod(0o644)
        helper = "/usr/lib/squid/basic_ncsa_auth"
        config = folder / "squid.conf"
        config.write_text(
            f"http_port 3128\npid_filename {folder}/pid\ncache_log {folder}/cache.log\n"
            f"access_log none\ncache deny all\ncoredump_dir {folder}\n"
            f"auth_param basic program {helper} {users}\nauth_param basic realm lab\n"
            "acl known proxy_auth REQUIRED\nacl tls port 443 20001\nacl CONNECT method CONNECT\n"
            "http_access deny CONNECT !tls\nhttp_access allow known\nhttp_access deny all\n"
            f"dns_nameservers {EDGE4}\nconnect_timeout 3 seconds\nshutdown_lifetime 1 seconds\n"
            "netdb_filename none\npinger_enable off\n"
        )
        log = (folder / "out").open("w")
        edge.spawn_daemon("squid", "-N", "-f", str(config), "-n", "nkn", stdout=log, stderr=log)
        log.close()

    def inventory_of(
        self, *hosts: str, proxy: dict[str, object] | None = None, clock: str = ""
    ) -> Path:
        """An inventory of workers whose agents run as nobody; ``clock``: as ``+400d``, theirs."""
        limited = (*unprivileged(), "env", "PATH=/usr/bin:/bin")
        shifted = shift_clock(clock) if clock else ()
        document = {
            "schema": "netprobe.inventory/1",
            "hosts": {
                host: {
                    "addresses": self[host].addresses,
                    "roles": ["worker"],
                    "vantage": {"command": [*self[host].enter, *limited, *shifted]},
                    **({"proxy": proxy} if proxy else {}),
                }
                for host in hosts
            },
        }
        return self.write(
            f"inventory-{next(self._inventories)}.yaml", yaml.safe_dump(document, sort_keys=False)
        )

    def diagnose(
        self,
        *words: str,
        hosts: Sequence[str] = ("worker",),
        proxy: dict[str, object] | None = None,
        clock: str = "",
        within: Sequence[str] = (),
    ) -> Finished:
        """Run the verb from these workers."""
        inventory = self.inventory_of(*hosts, proxy=proxy, clock=clock)
        return self.diagnose_with(inventory, *words, within=within)

    def diagnose_with(self, inventory: Path, *words: str, within: Sequence[str] = ()) -> Finished:
        """Run the verb with an inventory."""
        return netprobe("diagnose", "konnectivity", "-i", str(inventory), *words, within=within)


def make_certificates(folder: Path) -> None:
    """All certificates of the lab, and the authorities as ``.crt``."""
    signer = pki.authority(OU="kubernetes", CN="konnectivity-signer")
    # Every hosted cluster's signer has the same name; a stranger's has not.
    other = pki.authority(OU="kubernetes", CN="konnectivity-signer")
    stranger = pki.authority(O="somebody", CN="another-signer")
    root = pki.authority(OU="openshift", CN="root-ca")
    client = pki.authority(OU="openshift", CN="kube-csr-signer")
    operator = pki.authority(CN="ingress-operator@1700000000")
    company = pki.authority(O="Corporate", CN="Corporate Inspection CA")
    k0s = pki.authority(CN="kubernetes-ca")
    own = ("konnectivity-server", "konnectivity-server.clusters-hc1.svc")
    further = (f"{each}.apps.{ZONE}" for each in ("two", "half", "moved"))
    reached = (*own, NAME, *further, EDGE4, EDGE6)
    server = "konnectivity-server"
    pki.issue(folder, "konn.pem", signer, reached, O="kubernetes", CN=server)
    pki.issue(folder, "othername.pem", signer, own, O="kubernetes", CN=server)
    pki.issue(folder, "expired.pem", signer, reached, expired=True, O="kubernetes", CN=server)
    pki.issue(folder, "agent.pem", signer, CN="konnectivity-agent")
    pki.issue(folder, "oldagent.pem", signer, expired=True, CN="konnectivity-agent")
    pki.issue(folder, "neighbour.pem", other, CN="konnectivity-agent")
    pki.issue(folder, "stranger.pem", stranger, CN="konnectivity-agent")
    pki.issue(folder, "router.pem", operator, (f"*.apps.{ZONE}",), CN=f"*.apps.{ZONE}")
    pki.issue(folder, "wildcard.pem", company, (f"*.apps.{ZONE}",), CN=f"*.apps.{ZONE}")
    pki.issue(folder, "mitm.pem", company, (NAME, EDGE4, EDGE6), CN=NAME)
    # An application that signed its own certificate, for its own name or for that of the tunnel.
    shop = pki.authority(CN="shop.internal")
    pki.issue(folder, "app.pem", shop, ("shop.internal",), CN="shop.internal")
    shops = pki.authority(O="Shops", CN="Shops CA")
    pki.issue(folder, "shop1.pem", shops, ("pod-1.shop.internal",), CN="pod-1.shop.internal")
    pki.issue(folder, "shop2.pem", shops, ("pod-2.shop.internal",), CN="pod-2.shop.internal")
    pki.issue(folder, "appname.pem", pki.authority(CN=NAME), (NAME, EDGE4, EDGE6), CN=NAME)
    pki.issue(folder, "kas.pem", root, ("kubernetes", "kubernetes.default.svc"), CN="kubernetes")
    pki.issue(
        folder, "ignition.pem", root, ("ignition-server",), O="openshift", CN="ignition-server"
    )
    pki.issue(folder, "k0s.pem", k0s, (NAME, EDGE4, EDGE6), CN="k0s-konnectivity")
    authorities = {"signer": signer, "other": other, "kubeclient": client, "k0s": k0s}
    for file, one in {**authorities, "company": company, "shops": shops}.items():
        (folder / f"{file}.crt").write_bytes(one.pem())


def sweep() -> None:
    """Remove what labs left whose process is gone."""
    for name in sweep_namespaces("nkn"):
        shutil.rmtree(RESOLVERS / name, ignore_errors=True)


def _wire_sized(namespace: Namespace) -> None:
    """Make every packet one packet of the wire: rules of nft see sizes as routers would."""
    for line in run("ip", "-n", namespace.netns, "-o", "link").stdout.splitlines():
        device = line.split(": ")[1].partition("@")[0]
        if device != "lo":
            features = ("gso", "off", "tso", "off", "gro", "off")
            namespace.run("ethtool", "-K", device, *features, check=False)
