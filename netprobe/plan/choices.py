"""How much of a plan is probed: all, a covering part, or a sample; and what to do with too much.

A part of a plan that is asked for: some peers of each host, some ports of each range.

Deterministic: the same plan and number give the same sample. Every host that the plan uses as a
source or destination of a requirement is still used as one; of a range its edges come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from netprobe.errors import RequestError
from netprobe.model.coverage import Coverage
from netprobe.model.plan import Block, Plan, PlanCost
from netprobe.model.ports import PortRange, Ports
from netprobe.model.result import Result
from netprobe.plan.cost import count_results, estimate
from netprobe.plan.cover.cover import Cover, cover, with_flows

# Up to this a run probes everything unasked.
LONGEST_S = 300


def sample(plan: Plan, number: int) -> tuple[Plan, str]:
    """Give the sampled plan, and one sentence with its coverage."""
    blocks = tuple(_sample_block(block, number) for block in plan.blocks)
    sampled = replace(plan, blocks=blocks)
    pairs = (_count_pairs(sampled), _count_pairs(plan))
    flows = (sampled.flow_count(), plan.flow_count())
    words = (
        f"{pairs[0]:,} of {pairs[1]:,} pairs and {flows[0]:,} of {flows[1]:,} flows "
        f"({_word_number(number, 'peer')} of each host, {_word_number(number, 'port')} of each "
        "range, edges first); what was not probed may be blocked"
    )
    return sampled, words


def _word_number(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _count_pairs(plan: Plan) -> int:
    return sum(block.pair_count() for block in plan.blocks)


def _sample_block(block: Block, number: int) -> Block:
    ports = tuple(entry for one in block.ports for entry in _sample_ports(one, number))
    return replace(block, ports=ports, chosen=_choose_peers(block, number))


def _sample_ports(entry: PortRange, number: int) -> Ports:
    """Give the first, the last, and the rest spread evenly between them."""
    first, last = entry
    if last - first < number:
        return (entry,)
    if number == 1:
        return ((first, first),)
    step = (last - first) / (number - 1)
    return tuple((port, port) for port in (first + round(step * n) for n in range(number)))


def _choose_peers(block: Block, number: int) -> tuple[tuple[int, ...], ...]:
    """For each source the indexes of its destinations: windows that turn around all of them."""
    total = len(block.destinations)
    chosen = [
        _next_peers(block, index, min(total, max(number, -(-total // len(block.sources)))))
        for index in range(len(block.sources))
    ]
    reached = {peer for peers in chosen for peer in peers}
    for peer in range(total):
        if peer not in reached:
            _assign_to_first_source(block, peer, chosen)
    return tuple(tuple(sorted(peers)) for peers in chosen)


def _next_peers(block: Block, index: int, size: int) -> list[int]:
    """The next ``size`` destinations behind this source's place, itself left out."""
    total = len(block.destinations)
    start = index * size + 1
    turned = [(start + offset) % total for offset in range(total)]
    return [peer for peer in turned if block.has_flow(index, peer)][:size]


def _assign_to_first_source(block: Block, peer: int, chosen: Sequence[list[int]]) -> None:
    """Give a destination that no window holds to the first source that may have it."""
    for index in range(len(block.sources)):
        source = (peer + index) % len(block.sources)
        if block.has_flow(source, peer):
            chosen[source].append(peer)
            return


class CoverChoice(Struct, frozen=True):
    """What ``--cover`` says; ``copies`` is None where everything is to be probed.

    ``is_said``: the user chose it, however long it takes.
    """

    copies: int | None = None
    seed: int = 0
    is_said: bool = False

    def cover(self, plan: Plan) -> Cover | None:
        """Give the covering plan; None where everything is probed."""
        return None if self.copies is None else cover(plan, self.copies, self.seed)


class PlanPart(Struct, frozen=True):
    """The plan to probe, and the plan that reports are of.

    ``sample``: the words for a sample. ``cover``: how the plan covers a larger one.
    """

    plan: Plan
    whole: Plan
    sample: str | None = None
    cover: Cover | None = None


def choose_part(
    plan: Plan,
    choice: CoverChoice,
    sample_size: int | None = None,
    earlier: Iterable[Result] | None = None,
) -> PlanPart:
    """Choose what of the plan to probe.

    ``earlier``: results of an earlier run that a covering plan holds as well.
    """
    if sample_size is not None:
        part, words = sample(plan, sample_size)
        return PlanPart(part, plan, words)
    covering = choice.cover(plan)
    if covering is None:
        return PlanPart(plan, plan)
    covering = with_flows(covering, earlier or ())
    return PlanPart(covering.plan, covering.plan, cover=covering)


def refuse_too_much(plan: Plan, max_results: int, *, is_part: bool, is_said: bool) -> None:
    """Raise RequestError for a plan with more results, or longer than a run takes unasked.

    Results are at least one a pair; ports of a range share one while they share their fate. What
    the pace of closed UDP ports takes does not count: no choice of hosts makes it shorter.
    ``is_part``: the plan covers or samples a larger one, so that this is no choice any more.
    """
    results = count_results(plan)
    if is_part and results > max_results:
        raise RequestError(
            f"the plan has {results:,} results, more than {max_results:,}: choose a part "
            "(--limit, --from, --to, --only), or raise --max-results"
        )
    cost = estimate(plan)
    too_long = cost.seconds - cost.paced_udp_seconds > LONGEST_S
    why = []
    if results > max_results:
        why.append(f"has {results:,} results, more than {max_results:,}")
    if too_long and not is_said:
        why.append(f"takes {_word_time(cost)}, more than {LONGEST_S // 60} min")
    if why and not is_part:
        choices = "\n".join(f"  {line}" for line in _list_choices(plan, results, max_results))
        raise RequestError(f"the plan {' and '.join(why)}: choose\n{choices}")


def _list_choices(plan: Plan, results: int, max_results: int) -> Iterator[str]:
    part = cover(plan).plan
    about = part.coverage or Coverage()
    yield (
        f"--cover zones: {part.flow_count():,} flows between {about.pairs:,} pairs of hosts, "
        f"{_word_time(estimate(part))}; the rest is covered, not probed"
    )
    yield (
        "--limit, --from, --to, --only, --sample N: a part, of which nothing else is said "
        "(`netprobe plan --count` tells its time)"
    )
    more = f" --max-results {results}" if results > max_results else ""
    yield f"--cover all{more}: all {plan.flow_count():,} flows, {_word_time(estimate(plan))}"


def _word_time(cost: PlanCost) -> str:
    minutes = -(-cost.seconds // 60)
    hours = f"{int(minutes // 60)} h " if minutes >= 60 else ""
    return f"about {hours}{int(minutes % 60)} min"
