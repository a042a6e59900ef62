"""What a rehearsal saw → verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from netprobe.model.rehearsed import Card, OverlayFacts, TunnelTrial
from netprobe.model.result import Place, Proof, Result, State, Verdict

OverlayFate = Literal[
    "carries", "source-card", "destination-card", "both-cards", "nothing", "no-echo", "no-tcp",
    "no-full-segments", "no-transfer",
]  # fmt: skip


class RehearsedRow(Struct, frozen=True):
    """One line of the table; ``because`` may use the words of ``_word_facts``."""

    verdict: Verdict
    state: State
    reason: str
    proof: Proof
    where: tuple[Place, ...]
    because: str

    def make_result(self, base: Result, words: Mapping[str, object], **further: Any) -> Result:
        """Give the result of a flow that this line is about."""
        return replace(
            base,
            verdict=self.verdict,
            state=self.state,
            reason=self.reason,
            proof=self.proof,
            where=self.where,
            because=self.because.format_map(words),
            attempts=1,
            **further,
        )


def _make_card_row(where: tuple[Place, ...], cards: str) -> RehearsedRow:
    return RehearsedRow(
        "blocked", "open", "overlay-offload", "none", where,
        "{echo} the tunnel and {tcp}; once the CPU makes the checksums, {mended}: " + cards
        + " spoils checksums or segments of packets inside of a tunnel. The remedy is {remedy}; "
        "it was not done: netprobe has set its own tunnel's device alone",
    )  # fmt: skip


def _make_broken_row(because: str) -> RehearsedRow:
    return RehearsedRow("blocked", "open", "overlay-broken", "none", ("path",), because)


ROWS: Final[dict[OverlayFate, RehearsedRow]] = {
    "carries": RehearsedRow(
        "pass", "open", "tunnel-transfer", "nonce", (),
        "{bytes} bytes of TCP went each way through a tunnel of both kernels in {seconds} s, and "
        "an echo request and segments of full size before (VXLAN network id {network}, MTU {mtu})",
    ),
    "source-card": _make_card_row(("source",), "{near}"),
    "destination-card": _make_card_row(("destination",), "{far}"),
    "both-cards": _make_card_row(("source",), "{near}, and also {far},"),
    "nothing": _make_broken_row(
        "nothing passes a tunnel of both kernels, neither echo requests nor TCP{row}"
    ),
    "no-echo": _make_broken_row(
        "TCP passes a tunnel of both kernels, echo requests do not"
    ),
    "no-tcp": _make_broken_row(
        "echo requests pass a tunnel of both kernels and {tcp}, also where the CPU makes the "
        "checksums: something on the way spoils or drops packets by what is inside of the tunnel"
    ),
    "no-full-segments": _make_broken_row(
        "{echoes}small TCP segments pass a tunnel of both kernels, segments of full "
        "size do not (MTU {mtu} inside), also where the CPU makes the checksums: a link with a "
        "smaller MTU, or a filter by size"
    ),
    "no-transfer": _make_broken_row(
        "{echoes}single segments of full size pass a tunnel of both kernels, a transfer of 200,000 "
        "bytes stops, also where the CPU makes the checksums"
    ),
}  # fmt: skip

# What TCP does not do, and what it does then, by ``TunnelTrial.reach``.
_REACHED: Final = (
    "no TCP connection opens", "TCP segments of full size do not pass",
    "a transfer over TCP stops", "TCP passes",
)  # fmt: skip
_MENDED_TO: Final = (
    "nothing changes",
    "a connection opens",
    "segments of full size pass",
    "TCP passes",
)
_MENDED: Final[dict[str, OverlayFate]] = {
    "source": "source-card", "destination": "destination-card", "both": "both-cards",
}  # fmt: skip


def judge_rehearsal(base: Result, facts: OverlayFacts) -> Result:
    """Give the result of a tunnel that was tried."""
    row = ROWS[find_fate(facts)]
    card = facts.far if row.where == ("destination",) else facts.near
    at_fault = card if row.reason == "overlay-offload" else Card("", None, None)
    return row.make_result(
        base,
        _word_facts(facts, card),
        device=at_fault.device,
        driver=at_fault.driver,
        warnings=(*base.warnings, *_list_further_faults(facts)),
    )


def find_fate(facts: OverlayFacts) -> OverlayFate:
    """Give the key of the table."""
    if facts.mended_at is not None:
        return _MENDED[facts.mended_at]
    return _find_broken(facts.trial)


def _find_broken(trial: TunnelTrial) -> OverlayFate:
    """Give the key for what passes, whatever the cards do."""
    if trial.carries_tcp:
        return "carries" if trial.echo else "no-echo"
    if trial.full:
        return "no-transfer"
    if trial.opened:
        return "no-full-segments"
    return "no-tcp" if trial.echo else "nothing"


def _list_further_faults(facts: OverlayFacts) -> Iterator[str]:
    """Say what does not pass either way, where the cards are not all that is at fault."""
    if facts.mended is None:
        return
    lost = [] if facts.trial.echo else ["no echo request passes"]
    if not facts.mended.carries_tcp:
        lost.append(_REACHED[facts.mended.reach])
    if lost:
        yield f"overlay-broken, too: {' and '.join(lost)}, also where the CPU makes the checksums"


def _word_facts(facts: OverlayFacts, card: Card) -> dict[str, str]:
    trial = facts.trial
    return {
        "bytes": f"{trial.bytes:,}",
        "seconds": f"{trial.took_us / 1_000_000:.3f}",
        "network": str(facts.network),
        "mtu": str(facts.mtu),
        "near": _word_card(facts.near),
        "far": _word_card(facts.far),
        "remedy": word_remedy(card.device),
        "echo": "echo requests pass" if trial.echo else "no echo request passes",
        "echoes": "echo requests and " if trial.echo else "",
        "tcp": _REACHED[trial.reach],
        "mended": "TCP passes" if facts.mended is None else _MENDED_TO[facts.mended.reach],
        "row": _word_row(facts),
    }


def _word_row(facts: OverlayFacts) -> str:
    """Say what else the run knows of the way, and what may then be the cause."""
    if not facts.row_arrived:
        return ""
    ids = "a filter for VXLAN network ids, or for what is inside of a tunnel (the id was random)"
    if facts.back_arrived:
        return f"; netprobe's own packets to the port arrive both ways: a possible cause is {ids}"
    return (
        "; netprobe's own packets to the port arrive, those back were not probed: possible causes "
        f"are a firewall on the way back, and {ids}"
    )


def _word_card(card: Card) -> str:
    driver = f" (driver {card.driver})" if card.driver else ""
    return f"{card.device or 'the interface'} of {card.host}{driver}"


def word_remedy(device: str | None) -> str:
    """Give the command that keeps a card from segments and checksums inside of tunnels."""
    offloads = "tx-udp_tnl-segmentation off tx-udp_tnl-csum-segmentation off"
    return f"ethtool -K {device or 'INTERFACE'} {offloads}"
