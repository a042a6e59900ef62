"""Every message between coordinator and agent, by its kind, which is the name of its class.

docs/wire.md is printed from here. Times are in the unit that ends their name, addresses are
literals, ports count from 1.
"""

from typing import Any, Dict

from . import (
    answers,
    host_messages,
    orders,
    parts,
    quality_messages,
    segment_messages,
    stream_messages,
    tunnel_messages,
)

# Orders that are not named so; of these the last one goes both ways.
_BOTH_WAYS = "StreamCredit"
_OTHER_ORDERS = ("Beat", _BOTH_WAYS)
_MESSAGES: Dict[str, Any] = {
    name: record
    for module in (
        orders,
        answers,
        host_messages,
        stream_messages,
        tunnel_messages,
        quality_messages,
        segment_messages,
    )
    for name, record in vars(module).items()
    if hasattr(record, "_fields") and not hasattr(parts, name)
}

# What the agent understands, and what the coordinator does.
ORDERS = {
    name: record
    for name, record in _MESSAGES.items()
    if name.endswith("Order") or name in _OTHER_ORDERS
}
ANSWERS = {
    name: record for name, record in _MESSAGES.items() if name not in ORDERS or name == _BOTH_WAYS
}
