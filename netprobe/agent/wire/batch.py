"""What a run without a live coordinator says besides orders and answers: scripts and results.

A script is what one host does in one round, and a result file is what came of it. Both are lines
of text (docs/wire.md), because engines change bytes on their way.
"""

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from .answers import HelloLine
from .messages import ANSWERS, ORDERS

BATCH_FORMAT = 3

# Phases of a script, in their order. Ports that must not answer are asked before the others.
PHASES = ("listen", "denied", "go", "tell")
BARRIERS = ("engine", "clock", "none")

# A run that an engine drives: its folder on the host (run, host index), and what lies there.
FOLDER_NAME = "netprobe-%s-h%d"
RESULTS_FILE, WORDS_FILE, STARTED_FILE, PID_FILE = "results", "words", "started", "pid"
# Said to the agent beside the words of the steps: in how many seconds (behind a full stop) the next
# command comes at the latest, and that nobody reads any more what a command prints.
SILENCE_WORD, LOST_WORD = "silence", "lost"
# Printed, with the folder, when listeners are open.
STARTED_LINE = "NETPROBE-STARTED "


class HostBudgets(NamedTuple):
    """How much a host may ask by itself, in one round, of what failed. ``looks``: ports that are
    asked a second time. ``walks``, ``routes``, ``stories``: orders of these kinds. All 0: a
    coordinator asks again."""

    looks: int
    walks: int
    routes: int
    stories: int


class BatchStart(NamedTuple):
    """The first line of a script. ``run``: 16 hexadecimal digits. ``round`` counts from 1. ``host``
    and ``name``: whose script it is; ``addresses``: by which the host finds itself. ``barrier``:
    who says when the next phase begins: ``engine`` (a word from outside), ``clock`` (``starts_at``,
    seconds UTC) or ``none`` (nobody: it begins at once). ``window_s``: how long probing may take;
    ``margin_s``: how far clocks may be apart. Later than ``ends_at`` (UTC) nothing is started.
    ``silence_s``: how long an engine may be silent before the host ends the run. ``key``: by
    which probes are answered, the run's; ``result_key``: for what the host writes, its own.
    ``own_ids``: the first and last id of orders that the host gives itself."""

    format: int
    wire: int
    run: str
    round: int
    host: int
    name: str
    addresses: List[str]
    barrier: str
    starts_at: Optional[float]
    window_s: float
    margin_s: float
    ends_at: Optional[float]
    silence_s: float
    key: bytes
    result_key: bytes
    own_ids: Tuple[int, int]
    budgets: HostBudgets


class PhaseMark(NamedTuple):
    """A line of a script: the orders below it belong to this phase. A phase ends when all of its
    orders have; a phase may have several marks, which are carried out one after the other."""

    phase: str


class PhaseClock(NamedTuple):
    """In results: what began, with the host's wall clock (s UTC).
    ``begin``: the round; ``listening``: its listeners are open; ``go``: its probes; ``probed``: no
    probe is out any more; ``tell``: what was seen is asked for, and after that listeners close;
    ``told``: the round is over; ``end``: the host has ended in order; ``stopped``: by a signal or
    because nobody gave a word."""

    round: int
    phase: str
    wall_s: float


class ResultHeader(NamedTuple):
    """The first line of results, as a JSON object that people can read. ``started``: UTC."""

    format: int
    wire: int
    run: str
    round: int
    host: int
    name: str
    started: str


SCRIPT_RECORDS: Dict[str, Any] = {record.__name__: record for record in (BatchStart, PhaseMark)}
RESULT_RECORDS: Dict[str, Any] = {record.__name__: record for record in (PhaseClock, HelloLine)}

# These need a coordinator that listens to what comes back.
LIVE_ORDERS = frozenset(
    ("StartOrder", "Beat", "StopOrder", *(name for name in ORDERS if name.startswith("Stream")))
)
# What a script holds, and what results hold: orders stand before their answers.
IN_SCRIPTS: Dict[str, Any] = dict(
    {name: record for name, record in ORDERS.items() if name not in LIVE_ORDERS}, **SCRIPT_RECORDS
)
IN_RESULTS: Dict[str, Any] = dict(ORDERS, **dict(ANSWERS, **RESULT_RECORDS))
