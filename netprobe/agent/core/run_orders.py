"""Orders about the run itself: its start, signs of life, the rate, templates, and its end."""

from ..wire.answers import Bye
from ..wire.orders import Beat, RateOrder, StartOrder, StopOrder, TemplatesOrder
from ..wire.templates import template_of
from .agent import AgentCore, PipeAgent


def start_run(agent: PipeAgent, order: StartOrder) -> None:
    """Take over the run's key, this agent's index, and how long silence may last."""
    agent.key = order.key
    agent.host = order.host
    agent.dead_man.allow(order.silence_s)


def answer_beat(agent: AgentCore, _order: Beat) -> None:
    """Answer a sign of life with another."""
    agent.send(Beat())


def limit_rate(agent: AgentCore, order: RateOrder) -> None:
    """Start at most so many new probes a second from now on."""
    agent.rate.limit(order.per_s)


def keep_templates(agent: AgentCore, order: TemplatesOrder) -> None:
    """Keep templates for the orders that name them by their numbers."""
    for item in order.items:
        agent.templates[item.number] = template_of(item)


def stop_run(agent: PipeAgent, _order: StopOrder) -> None:
    """Say goodbye and end."""
    agent.send(Bye())
    agent.end()
