"""The resolvers that this host is configured with, so that each can be asked by itself."""

from typing import Any, Dict, List

RESOLV_CONF = "/etc/resolv.conf"


def nameservers(message: Dict[str, Any]) -> Dict[str, Any]:
    """The ``nameservers`` frame: addresses in the file's order; none where there is no file."""
    return {"t": "nameservers", "id": message["id"], "servers": read_servers(RESOLV_CONF)}


def read_servers(path: str) -> List[str]:
    """The ``nameserver`` lines of a resolv.conf."""
    servers: List[str] = []
    try:
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                words = line.split()
                if len(words) > 1 and words[0] == "nameserver" and words[1] not in servers:
                    servers.append(words[1])
    except OSError:
        return []
    return servers
