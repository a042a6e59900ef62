"""The shell text that unpacks a runtime on a host, runs a Python program with it, and removes it.

Like ``vantage/script.py`` it is POSIX sh in one line without exclamation marks or backslashes, so
that it survives any login shell as one quoted word. It needs sh, dd, gzip, tar and what every
system has beside them; busybox is enough.
"""

from __future__ import annotations

import secrets
import shlex

from netprobe.vantage.runtime.file import Runtime

# The host is ready to read the runtime from its standard input.
SEND_LINE = b"NETPROBE-SEND"
# Stands on stderr before the reason why the runtime is of no use there.
USELESS_RUNTIME_LINE = "NETPROBE-USELESS-RUNTIME"
USELESS_RUNTIME_STATUS = 98
# Its folder on the host begins so.
FOLDER_PREFIX = "netprobe-runtime-"

# In this order: what lies in memory first. Each is tried, because any may be noexec, full, or not
# ours to write to.
PLACES = ("/run", "/dev/shm", "$XDG_RUNTIME_DIR", "/tmp", "$HOME", "/var/lib", "/var/tmp")
# Files take whole pages, and folders some.
_SPARE_KB = 512

# It waits until nobody holds the other end of its stdin: however the agent, or the shell around it,
# ends. It says how the agent ended, which it read there.
_CLEANER = 'trap "" HUP INT TERM; s=137; while read -r x; do s=$x; done; rm -rf "$@"; exit $s'


def make_command(runtime: Runtime, code: str, *, announce: bool = False) -> str:
    """Make the shell text that reads ``runtime.payload`` from stdin and runs ``code`` with it.

    ``code`` is a Python program (``-I -S -c``). Its arguments are those of the shell, and its stdin
    begins with the first byte behind the payload. The text ends with the program's status, 98 where
    the runtime cannot be used; then stderr has one line that says why. ``announce``: print
    ``NETPROBE-SEND`` when the payload is awaited. Each run of a text has a folder of its own.
    """
    places = [f'"{place}"' for place in PLACES]
    folders = " ".join(f'"{place}/$t"' for place in PLACES)
    kilobytes = runtime.unpacked_bytes // 1024 + _SPARE_KB
    megabytes = -(-kilobytes // 1024)
    start = '"$d/ld.so" --library-path "$d/so" "$d/bin/python" -I -S'
    say = f"echo {SEND_LINE.decode()}; " if announce else ""
    return (
        # Unquoted, what a program says becomes one line.
        f"umask 077; set -f; t={FOLDER_PREFIX}{secrets.token_hex(8)}-$$; "
        f'no() {{ echo "{USELESS_RUNTIME_LINE}: $*" >&2; exit {USELESS_RUNTIME_STATUS}; }}; '
        # A new file without a word in it is a script for every shell, and can be run where any
        # program can.
        'try() { mkdir "$1" || { b="not writable"; return 1; }; '
        'b=noexec; : >"$1/x" && chmod 700 "$1/x" && "$1/x" || return 1; '
        f'b="no room"; dd if=/dev/zero of="$1/x" bs=1024 count={kilobytes} && rm "$1/x"; }}; '
        "go() { for c in dd gzip tar chmod mkdir rm; do command -v $c >/dev/null 2>&1 || "
        'no "$c is not installed there"; done; '
        f"d=; a=; for c in {' '.join(places)}; do "
        '[ -n "$c" ] && [ -d "$c" ] || continue; '
        'if try "$c/$t" 2>/dev/null; then d=$c/$t; break; fi; '
        'rm -rf "$c/$t" 2>/dev/null; a="$a${a:+, }$c ($b)"; done; '
        f'[ -n "$d" ] || no "it fits nowhere: ${{a:-no folder of its own}}; make {megabytes} MB '
        'free in one of them, or mount one of them without noexec"; '
        f"r='dd bs={len(runtime.payload)} count=1 iflag=fullblock'; "
        # Some old dd lack it.
        "dd count=0 iflag=fullblock </dev/null >/dev/null 2>&1 || "
        f"r='head -c {len(runtime.payload)}'; "
        f"{say}"
        'w=$({ $r 2>/dev/null | gzip -dc | tar -x -o -f - -C "$d"; } 2>&1) || '
        'no "it cannot be unpacked in $d: "$w; '
        f'w=$({start} -V 2>&1) || no "it does not start in $d (status $?${{w:+, it says: }}"$w"; '
        f"it is for {runtime.arch}, the host is $(uname -m)): build one on a machine like this "
        'host and give it with --agent-python"; '
        f'{start} -c {shlex.quote(code)} "$@"; }}; '
        "w=; command -v setsid >/dev/null 2>&1 && w=setsid; "
        # 9 is the true stdout. 8 is the cleaner's stdin: the program holds it as long as it lives.
        'exec 9>&1; { (go "$@" 8>&1 >&9 9>&-); echo $?; } | '
        f"$w sh -c {shlex.quote(_CLEANER)} netprobe-cleaner {folders} >/dev/null 2>&1 9>&-"
    )


def runtime_script(runtime: Runtime, bootstrap: str, sudo: str, sudo_line: bytes) -> str:
    """Make the script of a live start, as ``agent_script`` does where the host has a Python."""
    command = make_command(runtime, bootstrap, announce=True)
    if not sudo:
        return command
    return (
        "ulimit -c 0; s=; "
        f'[ $(id -u) -eq 0 ] || {{ s="{sudo}"; echo {sudo_line.decode()}; }}; '
        f"exec $s sh -c {shlex.quote(command)} netprobe"
    )


def runtime_prologue(runtime: Runtime, code: str) -> bytes:
    """Make the beginning of a file that any ``sh`` runs on a host without Python: ``sh FILE ...``.

    Write it, and behind it whatever ``code`` reads: a Python program (``-I -S -c``), whose stdin is
    the file from its first byte behind this prologue, and whose ``sys.argv[1:]`` are the arguments
    of the file. Of the standard library it may import what netprobe's agent imports anywhere.
    stdout and stderr are the program's own. The file ends with the program's exit status, or with
    98 and one line on stderr where the runtime cannot be used there. Nothing of the runtime is left
    however the program ends. The file must be a file: a pipe (``sh <FILE``) cannot be read twice.

    For an engine that hands a command and its stdin to a host, ``make_command`` is the same without
    a file: its text is the command, and stdin is ``runtime.payload`` and the rest.
    """
    text = (
        "#!/bin/sh\n"
        "# netprobe with a Python of its own. Run it: sh FILE [ARGUMENT ...]\n"
        f'[ -f "$0" ] || {{ echo "{USELESS_RUNTIME_LINE}: run it as: sh FILE" >&2; '
        f"exit {USELESS_RUNTIME_STATUS}; }}\n"
        'exec <"$0"; dd bs=%08d count=1 >/dev/null 2>&1\n'
        f"{make_command(runtime, code).replace('%', '%%')}; exit $?\n"
    )
    head = (text % len((text % 0).encode("utf-8"))).encode("utf-8")
    return head + runtime.payload
