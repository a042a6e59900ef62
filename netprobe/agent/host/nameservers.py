"""The resolvers that this host is configured with, so that each can be asked by itself."""

from typing import List

from ..core.agent import AgentCore
from ..wire.host_messages import (
    Nameservers,
    NameserversOrder,
)

RESOLV_CONF = "/etc/resolv.conf"


def tell_nameservers(agent: AgentCore, order: NameserversOrder) -> None:
    """Answer with the addresses of the host's resolv.conf."""
    agent.send(Nameservers(order.id, read_servers(RESOLV_CONF)))


def read_servers(path: str) -> List[str]:
    """The ``nameserver`` lines of a resolv.conf in their order; a missing file has none."""
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
