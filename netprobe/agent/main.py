"""The agent's start, and every order that it knows.

Standard input and output belong to the protocol. Everything else that prints goes to stderr.
"""

import gc
import os
import sys
from importlib import import_module
from typing import Any, Dict, Optional, Tuple

from .core import loop as looping
from .core.agent import AgentCore, PipeAgent, end_on_signals
from .host.hello import make_hello
from .wire import (
    host_messages,
    orders,
    quality_messages,
    segment_messages,
    stream_messages,
    tunnel_messages,
)
from .wire.frames import PROCESS_NAME

# Engines hold thousands of tuples for moments. A search for cycles, which nothing here makes, would
# visit all of them again and again and take a tenth of the time.
GARBAGE_OBJECTS = 50000

# Who carries out an order: a module, and there a function that takes the agent and the order, or a
# class that the agent makes once and its method.
Handler = Tuple[str, str, Optional[str]]

# The first order for a module imports it: an agent that only listens need not compile the probers,
# and one that only probes need not compile the listeners.
HANDLERS: Dict[Any, Handler] = {
    orders.StartOrder: (".core.agent", "start_run", None),
    orders.Beat: (".core.agent", "answer_beat", None),
    orders.RateOrder: (".core.agent", "limit_rate", None),
    orders.TemplatesOrder: (".core.agent", "keep_templates", None),
    orders.StopOrder: (".core.agent", "stop_run", None),
    orders.ListenOrder: (".listeners.listeners", "AgentListeners", "listen"),
    orders.HeldOrder: (".listeners.listeners", "AgentListeners", "tell_held"),
    orders.CloseOrder: (".listeners.listeners", "AgentListeners", "close_round"),
    orders.SeenOrder: (".listeners.listeners", "AgentListeners", "tell_seen"),
    orders.RecordOrder: (".recorder.recorder", "Recorder", "start"),
    orders.StoryOrder: (".recorder.recorder", "Recorder", "tell_story"),
    orders.KeptOrder: (".recorder.recorder", "Recorder", "tell_kept"),
    orders.ProbeOrder: (".probers.orders", "submit_probe", None),
    orders.EchoOrder: (".probers.echo.engine", "EchoEngine", "submit"),
    quality_messages.SampleOrder: (".probers.samples", "Sampler", "submit"),
    orders.WalkOrder: (".probers.traceroute", "Walker", "submit"),
    host_messages.ResolveOrder: (".host.resolve", "Resolver", "submit"),
    host_messages.RouteOrder: (".host.route", "tell_route", None),
    host_messages.HopsOrder: (".host.route", "tell_hops", None),
    host_messages.ReturnPathOrder: (".host.route", "tell_return_path", None),
    host_messages.EgressOrder: (".host.route", "tell_egress", None),
    host_messages.NameserversOrder: (".host.resolve", "tell_nameservers", None),
    host_messages.OwnResetsOrder: (".host.own_resets", "find_own_resets", None),
    host_messages.PacketCountsOrder: (".host.counters", "tell_packet_counts", None),
    host_messages.SocketsOrder: (".host.port_owners", "tell_sockets", None),
    tunnel_messages.TunnelOpenOrder: (".tunnels.tunnels", "AgentTunnels", "open"),
    tunnel_messages.TunnelTryOrder: (".tunnels.tunnels", "AgentTunnels", "try_out"),
    tunnel_messages.TunnelChecksumsOrder: (".tunnels.tunnels", "AgentTunnels", "set_checksums"),
    tunnel_messages.TunnelCloseOrder: (".tunnels.tunnels", "AgentTunnels", "drop"),
    segment_messages.SegmentHearOrder: (".segment.hearing", "hear_routers", None),
    segment_messages.SegmentAskOrder: (".segment.asking", "ask_addresses", None),
    segment_messages.DhcpOrder: (".segment.dhcp", "ask_dhcp", None),
    stream_messages.StreamOpenOrder: (".streams.streams", "AgentStreams", "open"),
    stream_messages.StreamListenOrder: (".streams.streams", "AgentStreams", "listen"),
    stream_messages.StreamSendOrder: (".streams.streams", "AgentStreams", "send"),
    stream_messages.StreamCredit: (".streams.streams", "AgentStreams", "grant"),
    stream_messages.StreamAwaitOrder: (".streams.streams", "AgentStreams", "wait_for"),
    stream_messages.StreamInfoOrder: (".streams.streams", "AgentStreams", "tell_info"),
    stream_messages.StreamDropOrder: (".streams.streams", "AgentStreams", "drop"),
}


def carry_out(agent: AgentCore, order: Any) -> None:
    """Give an order to its handler."""
    module, name, method = HANDLERS[type(order)]
    handler = getattr(import_module(module, __package__), name)
    if method is None:
        handler(agent, order)
    else:
        getattr(agent.part(handler), method)(order)


def main() -> None:
    """Run the agent on standard input and output; it ends the process."""
    prepare_process()
    output_fd = _take_stdout()
    loop = looping.Loop()
    agent = PipeAgent(loop, 0, output_fd, carry_out)
    end_on_signals(agent)
    agent.greet(make_hello())
    agent.serve()
    agent.close()
    # Not sys.exit: a resolver thread may hang in getaddrinfo, and nothing is left to be flushed.
    os._exit(0)


def prepare_process() -> None:
    """Set what holds for every agent; its name shows administrators whose process this is."""
    gc.set_threshold(GARBAGE_OBJECTS)
    gc.enable()
    try:
        with open("/proc/self/comm", "w") as file:
            file.write(PROCESS_NAME)
    except OSError:
        pass  # it is only a name


def _take_stdout() -> int:
    """Keep standard output for frames; whatever prints from now on prints to stderr."""
    output_fd = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return output_fd
