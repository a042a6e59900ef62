"""The agent's start, and every order that it knows.

Standard input and output belong to the protocol. Everything else that prints goes to stderr.
"""

import gc
import os
import sys
from typing import Any, Callable, Dict

from .core import loop as looping
from .core.agent import Agent, Message, end_on_signals
from .host.hello import hello
from .wire.frames import template_from_json

# Engines hold thousands of tuples for moments; looking at all of them again and again for cycles,
# which nothing here makes, would take a tenth of their time.
GARBAGE_OBJECTS = 50000


def _start(agent: Agent, message: Message) -> None:
    agent.key = bytes(bytearray.fromhex(message["key"]))
    agent.host = message["host"]
    agent.dead_man.allow(message["silence_s"])


def _beat(agent: Agent, _message: Message) -> None:
    agent.send({"t": "beat"})


def _rate(agent: Agent, message: Message) -> None:
    agent.rate.limit(message["per_s"])


def _templates(agent: Agent, message: Message) -> None:
    for number, item in message["items"].items():
        agent.templates[int(number)] = template_from_json(item)


def _probe(agent: Agent, message: Message) -> None:
    from .probers.registry import PROBES

    engine = PROBES[message["proto"]]
    agent.part(message["proto"], engine()).submit(message)


def _cancel(agent: Agent, message: Message) -> None:
    from .probers.registry import PROBES

    for name in PROBES:
        if name in agent.parts:
            agent.parts[name].cancel(message["id"])


def _walk(agent: Agent, message: Message) -> None:
    from .probers.traceroute import Walker

    agent.part("walk", Walker).submit(message)


def _listeners(agent: Agent) -> Any:
    from .listeners.listeners import Listeners

    return agent.part("listeners", Listeners)


def _capture(agent: Agent, message: Message) -> None:
    from .host.capture import Captures

    agent.part("capture", Captures).capture(message)


def _captured(agent: Agent, message: Message) -> None:
    from .host.capture import Captures

    agent.part("capture", Captures).captured(message)


def _resolve(agent: Agent, message: Message) -> None:
    from .host.resolve import Resolver

    agent.part("resolve", Resolver).submit(message)


def _route(agent: Agent, message: Message) -> None:
    from .host.route import routed

    agent.send(routed(message))


def _back(agent: Agent, message: Message) -> None:
    from .host.return_path import way_back

    agent.send(way_back(message))


def _room(agent: Agent, message: Message) -> None:
    from .host.egress import room

    agent.send(room(message))


def _departures(agent: Agent, message: Message) -> None:
    from .host.tx_counter import departures

    departures(agent, message)


def _stream(agent: Agent, message: Message) -> None:
    from .streams.streams import Streams

    agent.part("stream", Streams).order(message)


def _nameservers(agent: Agent, message: Message) -> None:
    from .host.nameservers import nameservers

    agent.send(nameservers(message))


def _stop(agent: Agent, _message: Message) -> None:
    agent.send({"t": "bye"})
    agent.end()


# Every order that the agent knows. Its part is imported with its first order: an agent that only
# listens need not compile the probes, nor one that only probes the listeners.
ORDERS: Dict[str, Callable[[Agent, Message], None]] = {
    "start": _start,
    "beat": _beat,
    "rate": _rate,
    "templates": _templates,
    "listen": lambda agent, message: _listeners(agent).listen(message),
    "close": lambda agent, message: _listeners(agent).close_round(message),
    "seen": lambda agent, message: _listeners(agent).seen(message),
    "held": lambda agent, message: _listeners(agent).held(message),
    "capture": _capture,
    "captured": _captured,
    "probe": _probe,
    "cancel": _cancel,
    "resolve": _resolve,
    "route": _route,
    "back": _back,
    "room": _room,
    "walk": _walk,
    "nameservers": _nameservers,
    **dict.fromkeys(("open", "data", "credit", "await", "info", "shut", "drop"), _stream),
    "departures": _departures,
    "stop": _stop,
}


def main() -> None:
    """Run the agent on standard input and output; it ends the process."""
    gc.set_threshold(GARBAGE_OBJECTS)
    gc.enable()
    output_fd = _take_stdout()
    loop = looping.Loop()
    agent = Agent(loop, 0, output_fd, ORDERS)
    end_on_signals(agent)
    agent.greet(hello())
    agent.serve()
    agent.close()
    # Not sys.exit: a resolver thread may hang in getaddrinfo, and nothing is left to be flushed.
    os._exit(0)


def _take_stdout() -> int:
    """Keep standard output for frames; whatever prints from now on prints to stderr."""
    output_fd = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return output_fd
