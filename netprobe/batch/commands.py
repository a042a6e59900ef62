"""The commands by which any engine drives a run: the same on every host, without a Python there.

Each is POSIX sh in one quoted word, without exclamation marks or backslashes, so that it survives
any login shell; the host's own word follows it (``h3``). Only ``start`` needs a Python, and brings
one where it is told to. Nothing but result lines is printed on stdout.
"""

from __future__ import annotations

import shlex

from netprobe.agent.wire.batch import (
    FOLDER_NAME,
    LOST_WORD,
    PID_FILE,
    RESULTS_FILE,
    SILENCE_WORD,
    STARTED_LINE,
    WORDS_FILE,
)
from netprobe.agent.wire.frames import (
    NO_PYTHON_LINE,
    NO_PYTHON_STATUS,
    PROCESS_NAME,
    READY_LINE,
)
from netprobe.vantage.pack import ENGINE_BOOTSTRAP
from netprobe.vantage.runtime.file import Runtime
from netprobe.vantage.runtime.script import (
    USELESS_RUNTIME_LINE,
    USELESS_RUNTIME_STATUS,
    make_command,
)
from netprobe.vantage.script import agent_script

# The steps of a round, each on all hosts before the next begins, and the last one of a run.
FIRST_STEPS = ("start", "go", "wait", "collect")
NEXT_STEPS = ("next", "go", "wait", "collect")
LAST_STEP = "stop"
# In place of the last step where the run ends early: it prints what the host has so far.
EARLY_STEP = "halt"

# The run does not go on there, or took too long; the reason is on stderr.
LOST_STATUS = 3
# Looks at a file in the first second, before there is one look a second.
EARLY_LOOKS = 20
# A command that waits writes an empty line so often: so it finds out that nobody reads any more.
BEAT_S = 5
STOP_LOOKS = 100


def host_word(host: int) -> str:
    """Give the word that stands behind each command: the host's own, by its index."""
    return f"h{host}"


def make_commands(run: str, limit_s: int, runtime: Runtime | None = None) -> dict[str, str]:
    """Make the command of each step; ``limit_s``: how long one may wait for the host's part.

    Behind the host's word may stand in how many seconds the next command comes at the latest.
    With a runtime there is ``start-runtime``, too: its stdin begins with the runtime's payload.
    """
    find = _find_folder(run)
    lost = f"netprobe: run {run} does not go on here"
    must = (
        f'{find}[ -n "$d" ] || {{ echo "{lost}: this user has not started it, it has ended, or the '
        f'host was restarted" >&2; exit {LOST_STATUS}; }}; p=; read -r p <"$d/{PID_FILE}"; '
        + _tell_silence("$d")
    )

    def ask(word: str, how: str = ': >"$f"', then: str = "") -> str:
        return _quote_command(
            f'umask 077; trap "" HUP PIPE; {must}f=$d/{word}.$$; {how}; '
            f'echo {word}.$$ 1<>"$d/{WORDS_FILE}"; '
            f"{_wait_for_answer(limit_s)}"
            f'[ -d "/proc/$p" ] && [ -d "$d" ] || {{ echo "{lost}: it ended early" >&2; '
            f"exit {LOST_STATUS}; }}; "
            f'[ -e "$f" ] && {{ rm -f "$f"; echo "netprobe: run {run} takes longer than {limit_s} '
            f's here" >&2; exit {LOST_STATUS}; }}; {then}:'
        )

    bring = (
        {}
        if runtime is None
        else {"start-runtime": _quote_command(_wrap_start(make_command(runtime, ENGINE_BOOTSTRAP)))}
    )
    return {
        "start": _quote_command(_wrap_start(agent_script(bootstrap=ENGINE_BOOTSTRAP))),
        **bring,
        "next": ask("next", 'cat >"$f.in" && mv "$f.in" "$f"'),
        "go": ask("go"),
        "wait": ask("wait"),
        "collect": ask("tell", then=f'cat "$d/{RESULTS_FILE}"; '),
        LAST_STEP: _quote_command(f"{find}{_stop_run()}"),
        EARLY_STEP: _quote_command(f"{find}{_halt_run()}"),
    }


def _quote_command(text: str) -> str:
    return f"sh -c {shlex.quote(text)} netprobe"


def _find_folder(run: str) -> str:
    """Set ``d`` to the run's folder, which must be our own and have its pipe; else it is empty."""
    name = FOLDER_NAME.replace("h%d", "%s") % (run, "${1:-h*}")
    return (
        f'd=; for b in /run /dev/shm /tmp "$HOME"; do for c in "$b"/{name}; do '
        f'[ -L "$c" ] || {{ [ -p "$c/{WORDS_FILE}" ] && [ -O "$c" ] && d=$c; }}; done; done; '
    )


def _tell_silence(folder: str) -> str:
    """Tell the agent when the next command comes, where the engine says it."""
    return f'[ -z "$2" ] || echo "{SILENCE_WORD}.$2" 1<>"{folder}/{WORDS_FILE}"; '


def _wait_for_answer(limit_s: int) -> str:
    """Wait while the agent lives and has not done what we ask, for about so long.

    Not every ``sleep`` knows parts of a second, and not every ``echo`` that nobody reads it.
    """
    looks = limit_s + EARLY_LOOKS
    return (
        f'n=0; w=.05; while [ -e "$f" ] && [ -d "/proc/$p" ] && [ $n -lt {looks} ]; do '
        "sleep $w 2>/dev/null || sleep 1; n=$((n+1)); "
        f"[ $n -lt {EARLY_LOOKS} ] || w=1; "
        f"[ $w = 1 ] && [ $((n%{BEAT_S})) -eq 0 ] || continue; echo | cat 2>/dev/null || "
        f'{{ echo {LOST_WORD} 1<>"$d/{WORDS_FILE}"; exit {LOST_STATUS}; }}; done; '
    )


def _stop_run(word: str = LAST_STEP) -> str:
    """End the run in order by a word, and if it does not end, at once; nothing is left of it."""
    return (
        f'[ -n "$d" ] || exit 0; p=; read -r p <"$d/{PID_FILE}"; '
        f'echo {word} 1<>"$d/{WORDS_FILE}"; '
        f'n=0; while [ -d "$d" ] && [ $n -lt {STOP_LOOKS} ]; do '
        "sleep .05 2>/dev/null || { sleep 1; n=$((n+19)); }; n=$((n+1)); done; "
        '[ -d "$d" ] || exit 0; c=; read -r c 2>/dev/null <"/proc/$p/comm"; '
        f'[ "$c" = {PROCESS_NAME} ] && kill -9 $p; rm -rf "$d"'
    )


def _halt_run() -> str:
    """End the run as soon as it has told what was seen, and print all that it has found."""
    return (
        f'[ -n "$d" ] || exit 0; exec 4</dev/null; [ -r "$d/{RESULTS_FILE}" ] && '
        f'exec 4<"$d/{RESULTS_FILE}"; ( {_stop_run(EARLY_STEP)} ); cat <&4'
    )


def _wrap_start(text: str) -> str:
    """Run the text behind us, and wait only until it says where the results are.

    What it says else goes to stderr. Where it fails, the rest of our input is read: an engine may
    take a broken pipe for a broken connection.
    """
    ready, nothing, started = READY_LINE.decode(), NO_PYTHON_LINE.decode(), STARTED_LINE
    return (
        f"exec 3<&0; {{ ( {text} ) <&3 3<&- 2>&1 & }} | {{ s={LOST_STATUS}; "
        f'while read -r l; do case $l in "{started}"*) s=0; '
        f'{_tell_silence("${l#* }")}cat "${{l#* }}/{RESULTS_FILE}"; '
        f"break;; {ready}) ;; {nothing}*) s={NO_PYTHON_STATUS};; "
        f'{USELESS_RUNTIME_LINE}:*) s={USELESS_RUNTIME_STATUS}; echo "$l" >&2;; '
        '*) echo "$l" >&2;; esac; done; [ $s -eq 0 ] || cat <&3 >/dev/null; exit $s; }'
    )
