"""The packed agent, as it crosses the wire, under every Python from 3.6 up that is here."""

from __future__ import annotations

import glob
import os
import re
import subprocess
from pathlib import Path

import pytest

from netprobe.vantage.launch import Launcher, start_agent
from tests.vantage.support import (
    HOST,
    KEY,
    TEMPLATES,
    block,
    free_port,
    outcomes,
    probe,
    with_python,
)

PLACES = (
    "/root/.pyenv/versions/*/bin/python3.*",
    os.path.expanduser("~/.pyenv/versions/*/bin/python3.*"),
    "/usr/bin/python3.*",
    "/usr/local/bin/python3.*",
    "/opt/*/bin/python3.*",
    "/usr/libexec/platform-python",
)


def _interpreters() -> dict[str, str]:
    """Version by version, one interpreter each."""
    found: dict[str, str] = {}
    for path in sorted({path for place in PLACES for path in glob.glob(place)}):
        if not re.fullmatch(r"python3\.\d+|platform-python", Path(path).name):
            continue
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
        if done.returncode == 0 and tuple(map(int, done.stdout.split("."))) >= (3, 6):
            found.setdefault(done.stdout.strip(), path)
    return dict(sorted(found.items(), key=lambda item: int(item[0].split(".")[1])))


INTERPRETERS = _interpreters()


def test_the_oldest_python_is_here() -> None:
    """The oldest Python that an agent must run under is among those that the next test takes."""
    if "3.6" not in INTERPRETERS:
        pytest.skip(f"no Python 3.6 in any of {', '.join(PLACES)}")
    assert next(iter(INTERPRETERS)) == "3.6"


@pytest.mark.parametrize("version", INTERPRETERS)
async def test_the_packed_agent_does_its_work(version: str, tmp_path: Path) -> None:
    """Hello, listen, nonces over TCP and UDP, witness, holders, route, names, close, stop."""
    host = with_python(tmp_path / "bin", INTERPRETERS[version])
    port = free_port()
    async with Launcher() as launcher:
        link = await start_agent(host, HOST, key=KEY, launcher=launcher)
        assert link.hello["python"].startswith(version + ".")
        link.send(TEMPLATES)
        ports = [[port, port]]
        blocks = [block("tcp", "127.0.0.1", ports), block("udp", "127.0.0.1", ports)]
        listening = await link.request({"t": "listen", "id": 900, "blocks": blocks})
        for item in listening["blocks"]:
            assert (item["up"], item["undialled"]) == (ports, [])

        for order, proto in ((1, "tcp"), (2, "udp")):
            found = await outcomes(link, probe(order, proto, "127.0.0.1", ports))
            assert found == [(port, port, None, "nonce")]

        seen = await link.request({"t": "seen", "round": 900, "orders": [1, 2]})
        assert [item["order"] for item in seen["orders"]] == [1, 2]
        assert all(item["from"] == ["127.0.0.1"] for item in seen["orders"])
        held = await link.request({"t": "held", "blocks": blocks})
        assert held["blocks"][0]["held"][0]["pid"] == link.hello["pid"]
        routed = await link.request({"t": "route", "dst": "127.0.0.1", "src": None})
        assert (routed["dev"], routed["failure"]) == ("lo", None)
        resolved = await link.request({"t": "resolve", "name": "localhost"})
        assert "127.0.0.1" in resolved["addresses"]
        capturing = await link.request(
            {"t": "capture", "id": 901, "proto": "tcp", "ports": ports, "number": None}
        )
        captured = await link.request({"t": "captured", "id": 901})
        assert captured["failure"] == capturing["failure"]
        assert (await link.request({"t": "close", "id": 900}))["t"] == "closed"
        assert await outcomes(link, probe(3, "tcp", "127.0.0.1", ports)) == [
            (port, port, "refused", None)
        ]
        await link.close()
        assert link.exit_status == 0
