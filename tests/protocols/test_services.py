"""Real services of every protocol but DNS: they answer, and what they must not take they refuse."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from netprobe.protocols import PROTOCOLS
from tests.lab.netlab import LabError, Namespace, run, wait_for
from tests.needs import require, skip
from tests.patience import PATIENCE_S
from tests.protocols.conftest import ask
from tests.protocols.test_templates import HOST, KEY, NONCE

pytestmark = [pytest.mark.lab, pytest.mark.slow]

CHARON = "/usr/lib/ipsec/charon"
SILENCE_S = 0.4
# How long a client goes on to ask that must not take what it gets.
CLIENT_S = 5.0


def silent(host: Namespace, port: int, data: bytes) -> bool:
    """Whether a UDP port says nothing to these bytes, while nothing refuses them either."""
    with closing(host.socket(socket.AF_INET, socket.SOCK_DGRAM)) as client:
        client.settimeout(SILENCE_S)
        client.connect(("127.0.0.1", port))
        client.send(data)
        try:
            client.recv(4096)
        except TimeoutError:
            return True
        return False


def genuine(name: str, transport: str = "udp") -> bytes:
    """What our listener would answer."""
    return PROTOCOLS[name].template(transport, 4).fill(KEY, NONCE)


def start_chronyd(host: Namespace, folder: Path, port: int, words: str) -> None:
    """chronyd as a server that never touches the machine's clock."""
    config = folder / f"chrony-{port}.conf"
    config.write_text(
        f"port {port}\nbindaddress 127.0.0.1\nallow 127.0.0.0/8\ncmdport 0\nbindcmdaddress /\n"
        f"pidfile {folder}/chrony-{port}.pid\n{words}\n"
    )
    host.spawn("chronyd", "-x", "-d", "-u", "root", "-f", str(config), stderr=subprocess.DEVNULL)
    host.wait_until_listening(f"udp 127.0.0.1:{port}")


@pytest.mark.parametrize(
    ("port", "words", "said"),
    [(11123, "local stratum 5", "NTP stratum 5"), (11124, "", "NTP, not synchronised")],
)
def test_chronyd(host: Namespace, tmp_path: Path, port: int, words: str, said: str) -> None:
    """A real NTP server sends our timestamp back; the packet for our listener it drops."""
    require("chronyd")
    start_chronyd(host, tmp_path, port, words)
    reading = ask(host, "ntp", "udp", port)
    assert (reading.recognised, reading.said) == (True, said)
    assert silent(host, port, genuine("ntp"))


def ask_the_time(
    host: Namespace, folder: Path, port: int, limit_s: float
) -> subprocess.Popen[bytes]:
    """A real client that asks once and ends with 0 where it would set its clock."""
    return host.spawn(
        "chronyd", "-Q", "-t", f"{limit_s:.0f}", "-u", "root",
        f"server 127.0.0.1 port {port} iburst maxsamples 1",
        "cmdport 0", "bindcmdaddress /", f"pidfile {folder}/client.pid",
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def test_a_client_takes_the_time_from_a_server(host: Namespace, tmp_path: Path) -> None:
    """The control of the next test: the client does accept a server that has the time."""
    require("chronyd")
    start_chronyd(host, tmp_path, 11126, "local stratum 5")
    assert ask_the_time(host, tmp_path, 11126, PATIENCE_S).wait(PATIENCE_S) == 0


def test_a_client_takes_no_time_from_us(host: Namespace, tmp_path: Path) -> None:
    """A client that gets an answer of our listener's shape does not set its clock by it."""
    require("chronyd")
    template = PROTOCOLS["ntp"].template("udp", 4)
    with closing(host.socket(socket.AF_INET, socket.SOCK_DGRAM)) as server:
        server.bind(("127.0.0.1", 11125))
        server.settimeout(PATIENCE_S)
        client = ask_the_time(host, tmp_path, 11125, CLIENT_S)
        data, peer = server.recvfrom(100)
        request = data[:48] + template.request[48:]
        server.sendto(template.reply(KEY, data[40:48], HOST, 123, request)[:48], peer)
        assert client.wait(PATIENCE_S) != 0


@pytest.fixture(scope="module")
def serf(host: Namespace) -> int:
    """Serf, which is memberlist and little else."""
    require("serf")
    host.spawn("serf", "agent", "-node=a", "-bind=127.0.0.1:7946", "-rpc-addr=127.0.0.1:7373",
               stdout=subprocess.DEVNULL)  # fmt: skip
    host.wait_until_listening("udp 127.0.0.1:7946", "tcp 127.0.0.1:7946")
    return 7946


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_serf(host: Namespace, serf: int, transport: str) -> None:
    """A member answers a ping without a name, over UDP and TCP."""
    assert ask(host, "memberlist", transport, serf).recognised


def test_serf_ignores_what_is_for_our_listener(host: Namespace, serf: int) -> None:
    """A member that gets a ping to another name says nothing."""
    assert silent(host, serf, genuine("memberlist"))


def test_serf_with_a_key(host: Namespace) -> None:
    """A member with an encryption key, as MetalLB has one, answers over TCP only."""
    require("serf")
    host.spawn("serf", "agent", "-node=b", "-bind=127.0.0.1:7947", "-rpc-addr=127.0.0.1:7374",
               "-encrypt=AAAAAAAAAAAAAAAAAAAAAA==", stdout=subprocess.DEVNULL)  # fmt: skip
    host.wait_until_listening("udp 127.0.0.1:7947", "tcp 127.0.0.1:7947")
    reading = ask(host, "memberlist", "tcp", 7947)
    assert (reading.recognised, reading.said) == (True, "memberlist with an encryption key")
    request = PROTOCOLS["memberlist"].service_request("udp", 4)
    assert request is not None
    assert silent(host, 7947, request)


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_alertmanager(host: Namespace, tmp_path: Path, transport: str) -> None:
    """Another memberlist, which packs its gossip behind the ack."""
    require("prometheus-alertmanager")
    config = tmp_path / "alertmanager.yml"
    config.write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    port = 9094 if transport == "udp" else 9096
    host.spawn(
        "prometheus-alertmanager", f"--config.file={config}", f"--storage.path={tmp_path}/data",
        f"--cluster.listen-address=127.0.0.1:{port}", f"--web.listen-address=127.0.0.1:{port + 1}",
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    host.wait_until_listening(f"{transport} 127.0.0.1:{port}")
    assert ask(host, "memberlist", transport, port).recognised


@pytest.fixture(scope="module")
def charon(host: Namespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """strongSwan's IKE daemon, open for everybody, with a private /run; gives its log."""
    require(CHARON, "swanctl")
    folder = tmp_path_factory.mktemp("charon")
    log = folder / "log"
    config, connections = folder / "strongswan.conf", folder / "swanctl.conf"
    config.write_text(
        "charon {\n install_routes = no\n"
        " load = random nonce aes sha1 sha2 hmac kdf gmp kernel-netlink socket-default vici\n"
        f" filelog {{ log {{ path = {log}\n flush_line = yes\n default = 1 }} }}\n"
        f" start-scripts {{ load = swanctl --load-conns --file {connections} }}\n}}\n"
        "swanctl { load = }\n"
    )
    connections.write_text(
        "connections { any { version = 2\n local { auth = psk }\n remote { auth = psk } } }\n"
    )
    host.spawn(
        "sh", "-c", f"mount -t tmpfs none /run && exec {CHARON}",
        env=os.environ | {"STRONGSWAN_CONF": str(config)}, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        host.wait_until_listening("udp 0.0.0.0:500", "udp 0.0.0.0:4500")
    except LabError:
        skip("charon does not start here", "a kernel with IPsec")
    wait_for(lambda: "added vici connection" in _text(log), "charon to load its connection")
    return log


@pytest.mark.parametrize(("name", "port"), [("ike", 500), ("ike-nat", 4500)])
def test_charon(host: Namespace, charon: Path, name: str, port: int) -> None:
    """A gateway parses every payload and refuses the proposal, each time anew."""
    for _ in range(2):
        reading = ask(host, name, "udp", port)
        assert (reading.recognised, reading.said) == (True, "IKE NO_PROPOSAL_CHOSEN")
    words = _text(charon)
    assert "parsed IKE_SA_INIT request 0 [ SA KE No V ]" in words
    assert "received proposals unacceptable" in words
    assert "malformed" not in words


def start_openvpn(host: Namespace, folder: Path, port: int, *options: str) -> Path:
    """An OpenVPN server; gives the path of its log."""
    key, certificate, log = (folder / name for name in ("key.pem", "cert.pem", f"{port}.log"))
    if not key.exists():
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test",
            "-keyout", str(key), "-out", str(certificate))  # fmt: skip
    host.spawn(
        "openvpn", "--dev", f"tun{port}", "--dev-type", "tun", "--port", str(port), "--mode",
        "server", "--tls-server", "--dh", "none", "--ca", str(certificate), "--cert",
        str(certificate), "--key", str(key), "--ifconfig-noexec", "--local", "127.0.0.1",
        "--log", str(log), *options,
    )  # fmt: skip
    wait_for(lambda: "Initialization Sequence Completed" in _text(log), f"openvpn: {log}")
    return log


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


@pytest.fixture
def openvpn() -> None:
    """Skip where OpenVPN, openssl or the tunnel device is missing."""
    require("openvpn", "openssl", "tunnel devices")


@pytest.mark.parametrize(
    ("transport", "option", "port"), [("udp", "udp", 1194), ("tcp", "tcp-server", 1195)]
)
def test_openvpn(
    host: Namespace, openvpn: None, tmp_path: Path, transport: str, option: str, port: int
) -> None:
    """A server without tls-auth resets a session of ours, over UDP and TCP."""
    start_openvpn(host, tmp_path, port, "--proto", option)
    reading = ask(host, "openvpn", transport, port)
    assert (reading.recognised, reading.said) == (True, "OpenVPN server reset")


def test_openvpn_with_tls_auth(host: Namespace, openvpn: None, tmp_path: Path) -> None:
    """A server with tls-auth sees an HMAC of the right length in the packet for our listener."""
    key = tmp_path / "ta.key"
    run("openvpn", "--genkey", "secret", str(key))
    log = start_openvpn(host, tmp_path, 1196, "--tls-auth", str(key), "0")
    assert silent(host, 1196, genuine("openvpn"))
    wait_for(lambda: "packet HMAC authentication failed" in _text(log), "the server's complaint")
    assert "cannot locate HMAC" not in _text(log)


def make_vxlan(host: Namespace, device: str, words: str) -> None:
    """A VXLAN device, up; skip where the kernel makes none."""
    try:
        host.ip(f"link add {device} type vxlan {words}", f"link set {device} up")
    except LabError as problem:
        skip(f"no VXLAN device: {_reason(problem)}", "a kernel that makes them")


def _reason(problem: LabError) -> str:
    """The words of ``ip``, without the command's own line."""
    return str(problem).partition(": ")[2].partition("\n")[0]


def counters(host: Namespace, device: str) -> dict[str, int]:
    """Packets and bytes of a device, both ways."""
    names = ("rx_packets", "rx_errors", "tx_packets")
    folder = f"/sys/class/net/{device}/statistics"
    words = host.run("cat", *(f"{folder}/{name}" for name in names)).split()
    return dict(zip(names, map(int, words), strict=True))


def forwarding(host: Namespace, device: str) -> str:
    """Everything that a device and the neighbour tables have learned."""
    return host.run("bridge", "fdb", "show", "dev", device) + host.run("ip", "neigh")


def test_a_vxlan_device_drops_our_packet(host: Namespace) -> None:
    """An existing tunnel end neither counts, learns nor answers a packet of our network."""
    make_vxlan(host, "vx0", "id 5 dstport 4789 local 127.0.0.1")
    before = counters(host, "vx0"), forwarding(host, "vx0")
    assert silent(host, 4789, genuine("vxlan"))
    assert (counters(host, "vx0"), forwarding(host, "vx0")) == before


def test_a_vxlan_device_for_all_networks_does_nothing(host: Namespace) -> None:
    """A device that takes every network (as Cilium's) sees a frame for somebody else."""
    make_vxlan(host, "vx1", "external dstport 8472")
    before = forwarding(host, "vx1")
    assert silent(host, 8472, genuine("vxlan"))
    assert counters(host, "vx1")["rx_packets"] == 1
    assert counters(host, "vx1")["tx_packets"] == 0
    assert forwarding(host, "vx1") == before
    snmp = host.run("cat", "/proc/net/snmp")
    assert "192.0.2" not in host.run("ss", "-Huan")
    values = [line.split() for line in snmp.splitlines() if line.startswith("Ip:")]
    totals = dict(zip(values[0][1:], values[1][1:], strict=True))
    assert totals["ForwDatagrams"] == "0"


def test_without_a_vxlan_device_the_host_refuses(host: Namespace) -> None:
    """Before an installation the well-formed packet gets a port-unreachable: the way is open."""
    with closing(host.socket(socket.AF_INET, socket.SOCK_DGRAM)) as client:
        client.settimeout(PATIENCE_S)
        client.connect(("127.0.0.1", 4788))
        client.send(genuine("vxlan"))
        with pytest.raises(ConnectionRefusedError):
            client.recv(100)


def test_a_geneve_device_drops_our_packet(host: Namespace) -> None:
    """The same for Geneve, where the kernel has it."""
    try:
        host.ip("link add gn0 type geneve id 5 remote 127.0.0.1", "link set gn0 up")
    except LabError as problem:
        skip(f"no Geneve device: {_reason(problem)}", "a kernel that makes them")
    before = counters(host, "gn0")
    assert silent(host, 6081, genuine("geneve"))
    assert counters(host, "gn0") == before


@pytest.mark.parametrize(("name", "number"), [("ipip", 4), ("raw", 50)])
@pytest.mark.parametrize("family", [4, 6])
def test_raw_protocols_arrive_at_a_raw_socket(
    host: Namespace, name: str, number: int, family: int
) -> None:
    """A raw socket gets the packet (IPv4: behind its header) and our template knows it."""
    domain, loopback = (socket.AF_INET, "127.0.0.1") if family == 4 else (socket.AF_INET6, "::1")
    template = PROTOCOLS[name].template("ipproto", family)
    with (
        closing(host.socket(domain, socket.SOCK_RAW, number)) as listener,
        closing(host.socket(domain, socket.SOCK_RAW, number)) as sender,
    ):
        listener.settimeout(PATIENCE_S)
        listener.bind((loopback, 0))
        sender.sendto(template.fill(KEY, NONCE), (loopback, 0))
        data = listener.recv(200)
    header = (data[0] & 0x0F) * 4 if family == 4 else 0
    assert template.recognise(KEY, data[header:]) == NONCE
