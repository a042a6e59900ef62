"""What the contrast means: who reports by the kubelet, whom logs reach, and who can dial."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from netprobe.konnectivity.tables import fill
from netprobe.konnectivity.verdicts import VERDICTS
from netprobe.model.contrast import ContrastFinding, NodeContrast
from netprobe.model.result import Result
from netprobe.protocols.base import format_place

_LOOK = "`netprobe diagnose konnectivity` from one of these nodes tells more"
_NODES = "look at these nodes themselves (ssh, a bundle), as nothing says that they can dial"
_SERVER_SIDE = (
    "look at the Konnectivity server's side: its pod, its certificate, the kube-apiserver's egress "
    f"configuration, and whether konnectivity-agent runs; {_LOOK}"
)


def read_dial(node: str, missing: str, results: Iterable[Result]) -> NodeContrast:
    """Read what a node's dialling gave: of several addresses the first that fails counts."""
    found = list(results)
    if missing or not found:
        return NodeContrast(node, missing, "unknown")
    bad = next((one for one in found if one.verdict == "blocked"), None)
    if bad is not None:
        return NodeContrast(
            node, "", "fails", _name_verdict(bad), bad.because, bad.rejected_by or ""
        )
    unsure = next((one for one in found if one.verdict != "pass"), None)
    if unsure is not None:
        return NodeContrast(node, "", "unknown", "", unsure.because)
    return NodeContrast(node, "", "opens", "", found[0].because)


def _name_verdict(result: Result) -> str:
    """Name the verdict of ``diagnose konnectivity`` that says the same."""
    if result.reason == "local-firewall":
        return "LOCAL_FIREWALL"
    if result.rejected_by:
        return "ICMP_REJECT"
    by_state = {"filtered": "TCP_FILTERED", "closed": "TCP_REFUSED"}
    return by_state.get(result.state, "NO_ROUTE" if result.reason == "no-route" else "")


def judge_contrast(server: str, port: int, nodes: Sequence[NodeContrast]) -> ContrastFinding:
    """Give one finding of all nodes."""
    place = f"tcp {port} to {server}"
    cut = [one for one in nodes if one.dial == "fails"]
    mute = [one for one in nodes if one.logs == "fail"]
    asked = [one for one in nodes if one.logs in ("work", "fail")]
    told = sum(not one.missing for one in nodes)
    said = f"{told:,} of {len(nodes):,} nodes reported through the kubelet"
    if asked:
        said += f"; `logs` reaches {len(asked) - len(mute):,} of {len(asked):,} that were asked"
    untold = sum(one.dial == "unknown" and not one.missing for one in nodes)
    if untold:
        said += f"; {untold:,} of them do not tell whether they can dial"
    if cut:
        return _judge_cut(server, port, cut, mute, f"{said}; {len(cut):,} cannot open {place}")
    dialled = sum(one.dial == "opens" for one in nodes)
    if mute and dialled:
        able = [one for one in mute if one.dial == "opens"]
        first = (able or mute)[0]
        seen = (
            f"{said}; {len(able):,} of those that it does not reach open {place}; {first.node}: "
            f"{first.logs_words}"
        )
        title, remedy = f"`logs` fails, and not because nodes cannot open {place}", _SERVER_SIDE
        if not able:
            title, remedy = "`logs` fails on nodes that do not tell whether they can dial", _NODES
        return ContrastFinding(True, title, seen, remedy, tuple(one.node for one in mute))
    if not dialled:
        why = next((one.missing or one.dial_words for one in nodes if one.dial == "unknown"), "")
        return ContrastFinding(None, f"no node tells whether it can open {place}", f"{said}; {why}")
    if not asked:
        why = next((one.logs_words for one in nodes if one.logs_words), "nobody was asked")
        return ContrastFinding(None, "whether `logs` works is not known", f"{said}; {why}")
    return ContrastFinding(
        False, "the tunnel carries `logs`", f"{said}; {dialled:,} nodes open {place}"
    )


def _judge_cut(
    server: str, port: int, cut: Sequence[NodeContrast], mute: Sequence[NodeContrast], said: str
) -> ContrastFinding:
    """Say why nodes cannot dial, and how that goes with those that logs do not reach."""
    code, count = Counter(one.dial_code for one in cut).most_common(1)[0]
    first = next(one for one in cut if one.dial_code == code)
    place = format_place(server, port)
    words = {"to": place, "address": server, "port": port, "offender": first.dial_by or "a router"}
    names = {one.node for one in cut}
    both = sum(one.node in names for one in mute)
    if mute and both == len(mute):
        said += f"; all that `logs` does not reach ({both:,}) are among them"
    elif mute:
        said += f"; {both:,} of the {len(mute):,} that `logs` does not reach are among them"
    elif any(one.logs == "work" for one in cut):
        said += "; other nodes' agents carry `logs` for now"
    title, remedy = f"they cannot open {place}", _LOOK
    if code:
        title = f"{fill(VERDICTS[code].title, words)} ({code})"
        remedy = fill(VERDICTS[code].remedy, words)
    title = f"{count:,} node{'s' if count > 1 else ''}: {title}"
    because = f"{said}; {first.node}: {first.dial_words}"
    return ContrastFinding(True, title, because, remedy, tuple(one.node for one in cut))
