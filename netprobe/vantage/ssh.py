"""The vantage ``ssh``: the user's own OpenSSH, and the only place that quotes for another shell.

A run's connections have a private folder. A coordinator that is killed cannot clean up, so a small
shell does: it makes the folder, waits for the end of its stdin, which the kernel brings about, ends
ssh's masters and deletes the folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path

from netprobe.children import close_pipes
from netprobe.model.host_key import HostKey
from netprobe.model.inventory import Host, Ssh
from netprobe.model.printable import word_command
from netprobe.vantage.base import Trouble, Way, ended_words

# The first value that ssh obtains wins, so the user's own options stand before these.
OPTIONS = (
    # Stdin carries the protocol and there is no terminal: ssh could never ask.
    ("BatchMode", "yes"),
    ("ConnectTimeout", "10"),
    ("ServerAliveInterval", "10"),
    ("ServerAliveCountMax", "3"),
    # Banners of sshd and notes on known_hosts would drown the words that matter.
    ("LogLevel", "ERROR"),
    # What the user's configuration does for interactive use would fail or print here.
    ("ClearAllForwardings", "yes"),
    ("PermitLocalCommand", "no"),
    ("RemoteCommand", "none"),
)
# A second start on the same host (sudo failed, ssh was lost) reuses the connection. Meanwhile ssh
# sends what its jump hosts say to /dev/null (sshconnect.c, ssh_proxy_connect).
SHARED = (("ControlMaster", "auto"), ("ControlPersist", "3"))
# All that ssh can do fills a packet of 1,500 bytes with names; every sshd of today has these. The
# exchange of keys with post-quantum algorithms has large packets, too.
SMALL = (
    ("KexAlgorithms", "curve25519-sha256,ecdh-sha2-nistp256"),
    ("Ciphers", "aes128-ctr,aes128-gcm@openssh.com"),
    ("MACs", "hmac-sha2-256"),
)
SSH_FAILED = 255

REVOKED_KEY = "REVOKED HOST KEY DETECTED"
UNKNOWN_KEY = "Host key verification failed"
# ssh tells what went wrong only in words. (words in stderr, another try may help, the fix)
_FIXES = (
    (REVOKED_KEY, False,
     "its host key was revoked, so nobody should trust it: ask those who keep the host"),
    ("Too many authentication failures", False,
     "ssh-agent offers too many keys: set IdentityFile and IdentitiesOnly in ~/.ssh/config"),
    ("Permission denied", False,
     "ssh cannot ask for a password here: give it a key (ssh-agent, IdentityFile), or the right "
     "user"),
    ("Bad configuration option", False, "correct the ssh options of this host or ~/.ssh/config"),
    ("Bad owner or permissions", False, "correct the owner and mode of that file"),
    ("Could not resolve hostname", False,
     "correct `ssh: {host: ...}` or the address in the inventory"),
    ("Unable to negotiate", False, "client and server share no algorithm: see ssh_config(5)"),
    # The words of a jump host about a connection that it tried from its own network.
    ("open failed: administratively prohibited", False,
     "the jump host forbids forwarding: AllowTcpForwarding or PermitOpen in its sshd_config"),
    ("open failed: connect failed: Connection refused", True,
     "the jump host got there, but nothing listens on that port: is sshd running?"),
    ("open failed: connect failed: Connection timed out", True,
     "the jump host got no answer: the host is down, the address wrong, or a firewall drops ssh"),
    ("open failed: connect failed: No route to host", True,
     "the jump host found nobody there: the host is down, or the address is wrong"),
    ("open failed: connect failed: Network is unreachable", True,
     "the jump host has no route to that address"),
    ("open failed: connect failed: ", False,
     "the jump host could not connect to it: does it know that name or address?"),
    ("stdio forwarding failed", True, "the jump host could not connect to it"),
    ("Connection refused", True,
     "nothing listens on that port: is sshd running, and is the port right?"),
    ("timed out during banner exchange", True,
     "its sshd did not greet: the host is down or hangs, the address is wrong, or a firewall drops "
     "ssh"),
    ("timed out", True,
     "nothing answered: the host is down, the address is wrong, or a firewall drops ssh"),
    ("No route to host", True, "the host is down, or the address is wrong"),
    ("Network is unreachable", True, "this machine has no route to that address"),
    ("kex_exchange_identification", True,
     "sshd hung up at once: MaxStartups, or it refuses this address"),
)  # fmt: skip


# ssh's words, over many lines; an attack looks exactly as a host that was installed anew.
CHANGED_KEY = "REMOTE HOST IDENTIFICATION HAS CHANGED"
_SENT_KEY = re.compile(
    r"fingerprint for the (\S+) key sent by the remote host is\s+(\S+?)\.?$", re.M
)
_KNOWN_KEY = re.compile(r"^Offending (?:\S+ )?key in (.+):(\d+)$", re.M)
_KEY_OF = re.compile(r"[Hh]ost key for (\S+) has changed")

# A login went well, and our script did not begin.
_SHELL_ENDED = (
    "The login went well, but its shell ended before netprobe's agent could start: the account has "
    "no login shell (nologin, false), or another command is forced (ForceCommand in sshd_config, "
    "command= in authorized_keys), or a start file of the shell (profile, bashrc) ends it"
)


def argv(host: Host, script: str, folder: Path | None) -> list[str]:
    """Call ssh with the script as one word that sh, bash, zsh, csh and fish hand on unchanged.

    Without a folder the connection is for this start alone, and jump hosts are heard.
    """
    run = f"exec sh -c {shlex.quote(script)}"
    return [*_make_client(host, folder), "--", _find_target(host).host, run]


def small_argv(host: Host, script: str) -> list[str]:
    """Call ssh, over a connection of its own, so that its exchange of keys needs small packets."""
    client = _make_client(host, None, SMALL)
    return [*client, "--", _find_target(host).host, f"exec sh -c {shlex.quote(script)}"]


def find_target_name(host: Host) -> str:
    """Give the name or address that ssh is to reach."""
    return _find_target(host).host


def _make_client(
    host: Host, folder: Path | None, first: Sequence[tuple[str, str]] = ()
) -> list[str]:
    target = _find_target(host)
    words = ["ssh", "-T", "-a", "-x"]
    for name, value in first:
        words += ["-o", f"{name}={value}"]
    words += target.options
    shared = (*SHARED, ("ControlPath", f"{folder}/%C")) if folder else (("ControlPath", "none"),)
    for name, value in (*OPTIONS, *shared):
        words += ["-o", f"{name}={value}"]
    if target.port is not None:
        words += ["-p", str(target.port)]
    if target.user is not None:
        words += ["-l", target.user]
    return words


def _find_target(host: Host) -> Ssh:
    return host.vantage.ssh or Ssh(host.addresses[0].text)


async def first_hop(host: Host) -> str | None:
    """Find the first machine that ssh goes through, by the whole configuration (``ssh -G``)."""
    words = [*_make_client(host, None), "-G", "--", _find_target(host).host]
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        out, _ = await process.communicate()
    finally:
        close_pipes(process)
    return read_hop(out.decode("utf-8", "replace"))


def read_hop(configuration: str) -> str | None:
    """Read the first hop in the output of ``ssh -G``: jump host, proxy command, or the host."""
    values = dict(line.split(" ", 1) for line in configuration.splitlines() if " " in line)
    jump = values.get("proxyjump", "none")
    if jump != "none":
        return jump.split(",")[0]
    command = values.get("proxycommand", "none")
    return command if command != "none" else values.get("hostname")


def explain(host: Host, status: int, said: Sequence[str], began: bool) -> Trouble:
    """Give ssh's own words and the fix; only a failed connection is worth another try."""
    command = word_command(["ssh", _find_target(host).host])
    words = ended_words(command, status, said)
    if status != SSH_FAILED:
        return Trouble(False, words if began else f"{words.rstrip('.')}. {_SHELL_ENDED}")
    text = "\n".join(said)
    about_key = _explain_host_key(host, command, words, text)
    if about_key is not None:
        return about_key
    for sign, transient, fix in _FIXES:
        if sign in text:
            return Trouble(transient, words.rstrip("."), fix)
    return Trouble(True, words)


def _explain_host_key(host: Host, command: str, words: str, text: str) -> Trouble | None:
    """Explain that ssh does not trust the host's key; None where it is something else."""
    if CHANGED_KEY in text:
        key = _read_changed_key(host, text)
        return Trouble(False, f"{command}: {_word_changed_key(text)}", host_key=key)
    if UNKNOWN_KEY not in text or REVOKED_KEY in text:
        return None
    options = _find_target(host).options
    key = HostKey(state="unknown", target=_word_target(host), options=options)
    fix = (
        "its host key is not known yet: connect once by hand, compare the fingerprint and accept "
        "it, or fill known_hosts"
    )
    return Trouble(False, words.rstrip("."), fix, key)


def _word_target(host: Host) -> str:
    """Give what ssh is called with by hand to get there as netprobe does, beside its options."""
    target = _find_target(host)
    if target.user is None and target.port is None:
        return target.host
    user = f"{target.user}@" if target.user is not None else ""
    name = f"[{target.host}]" if ":" in target.host else target.host
    port = f":{target.port}" if target.port is not None else ""
    return f"ssh://{user}{name}{port}"


def _read_changed_key(host: Host, text: str) -> HostKey:
    sent, known, name = (one.search(text) for one in (_SENT_KEY, _KNOWN_KEY, _KEY_OF))
    return HostKey(
        state="changed",
        target=_word_target(host),
        options=_find_target(host).options,
        name=name[1] if name else None,
        file=known[1] if known else None,
        sent=f"{sent[1]} {sent[2]}" if sent else None,
    )


def _word_changed_key(text: str) -> str:
    """Word a host key that differs from the known one: perhaps an attack, never one to accept."""
    sent, known, name = (one.search(text) for one in (_SENT_KEY, _KNOWN_KEY, _KEY_OF))
    key = f"the {sent[1]} key {sent[2]}" if sent else "another key"
    shown = f"{name[1] if name else 'it'} now shows {key}"
    place = f" ({known[1]}, line {known[2]})" if known else ""
    file = ["-f", known[1]] if known else []
    forget = word_command(["ssh-keygen", *file, "-R", name[1] if name else "HOST"])
    return (
        f"THE HOST KEY HAS CHANGED: {shown}, and not the one that is known{place}. This may be an "
        "attack: somebody between you and the host. Or the host was installed anew. Ask those who "
        "keep it for its fingerprint by another way than this network; only if it is this one: "
        f"{forget}, then connect once by hand"
    )


SSH = Way(argv, explain, first_hop, needs_folder=True, small=small_argv, target=find_target_name)

# A Unix socket's path has room for 107 bytes: folder, "/", 40 of %C, and 17 that ssh adds.
LONGEST_BASE = 36
CLOSE_S = 5.0
# It goes on without us.
HURRIED_CLOSE_S = 0.5

# A master that stands still keeps what cleans waiting. That goes on by itself after our end.
_CLEANER = (
    'd=$(mktemp -d "$1/npXXXXXXXX") || exit 1; exec 3<&0; { echo "$d"; read -r _ <&3; '
    'for s in "$d"/*; do [ -S "$s" ] && ssh -o "ControlPath=$s" -O exit master; done; '
    'rm -rf "$d"; } &'
)


class PrivateFolder:
    """A folder of mode 0700 that exists from its first use until ``close`` or our end."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._cleaner: asyncio.subprocess.Process | None = None
        self._path: Path | None = None

    async def path(self) -> Path:
        """Give the folder, made at its first use. Raises OSError where none can be made."""
        async with self._lock:
            if self._path is None:
                self._path = await self._make_folder()
            return self._path

    async def close(self, patience_s: float = CLOSE_S) -> None:
        """End the connection masters now, instead of after ``ControlPersist``, and the folder."""
        if self._cleaner is None:
            return
        cleaner, self._cleaner, self._path = self._cleaner, None, None
        assert cleaner.stdin is not None
        assert cleaner.stdout is not None
        cleaner.stdin.close()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await cleaner.stdout.read()  # it ends when all is clean
        finally:
            close_pipes(cleaner)

    async def _make_folder(self) -> Path:
        # A session of its own: Ctrl-C ends us, and then our end ends this.
        self._cleaner = await asyncio.create_subprocess_exec(
            *("sh", "-c", _CLEANER, "netprobe-cleaner", _choose_base()),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._cleaner.stdout is not None
        line = await self._cleaner.stdout.readline()
        if not line:
            raise OSError(f"no folder for ssh connections can be made in {_choose_base()}")
        return Path(os.fsdecode(line.rstrip(b"\n")))


def _choose_base() -> str:
    """Choose where the folder goes; TMPDIR may be too long a path for a socket."""
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    fits = len(base) <= LONGEST_BASE and os.path.isabs(base)
    return base if fits and os.path.isdir(base) and os.access(base, os.W_OK | os.X_OK) else "/tmp"
