"""The process's own standard streams: neither decides how a command ends, and errors are lines."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress

import click

from netprobe.errors import FAILED, REQUEST, FileErrors, NetprobeError, show_traceback
from netprobe.model.printable import clean
from netprobe.report.outputs import discard_stdout


class _Deaf(io.FileIO):
    """A file that accepts all writes, even where its disk is full or its reader went away."""

    def write(self, data: object, /) -> int:
        """Write what can be written and claim all of it."""
        view = memoryview(data)  # type: ignore[arg-type]  # whatever a BufferedWriter hands on
        with suppress(OSError):
            return super().write(view) or 0
        return view.nbytes


def guard_streams() -> None:
    """Progress and warnings that cannot be written change no verdict; closed streams are nothing.

    A stream that a test or a program put in place of the process's own is left as it is.
    """
    own = sys.__stderr__
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (open as long as we are)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (as above)
    elif own is not None and sys.stderr is own:
        raw = _Deaf(own.fileno(), "w", closefd=False)
        # Buffered by lines, as Python's own is.
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(raw),
            encoding=own.encoding,
            errors="backslashreplace",
            line_buffering=True,
        )


def tell(text: str) -> None:
    """Print a line on standard error; what files and hosts said may hold anything."""
    click.echo(clean(text), err=True)


def tell_usage(error: click.ClickException) -> int:
    """Print what is wrong with a command line, as click words it."""
    shown = io.StringIO()
    _forget_hidden(error).show(shown)
    for line in shown.getvalue().splitlines():
        tell(line)
    return REQUEST


def _forget_hidden(error: click.ClickException) -> click.ClickException:
    """Give the error without an offer of options that the help does not show either."""
    if not isinstance(error, click.NoSuchOption) or error.ctx is None:
        return error
    options = [one for one in error.ctx.command.params if isinstance(one, click.Option)]
    hidden = {word for one in options if one.hidden for word in one.opts}
    offered = [word for word in error.possibilities or () if word not in hidden]
    return click.NoSuchOption(error.option_name, error.message, offered, error.ctx)


def tell_error(error: NetprobeError) -> int:
    """Print an error; problems of files begin with their place, others with ``netprobe:``."""
    if isinstance(error, FileErrors):
        for problem in error.problems:
            tell(str(problem))
    else:
        for line in str(error).splitlines():
            print_line(line)
    return error.exit_status


def tell_unexpected(error: Exception) -> int:
    """Print what nobody foresaw: a full disk, a shortage, a file of no use, else a bug."""
    told = _tell_full(error) or _tell_shortage(error) or _tell_file(error)
    return told or _tell_bug(error)


def _tell_full(error: Exception) -> int:
    """A full disk is the user's to see, and no bug; 0 where it is something else."""
    if not isinstance(error, OSError) or error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return 0
    discard_stdout()
    print_line(f"cannot write to {error.filename or 'standard output'}: {error.strerror}")
    return FAILED


def _tell_shortage(error: Exception) -> int:
    """Name what this machine has no more of; 0 where it is something else."""
    from netprobe.agent.wire.failures import find_shortage

    shortage = find_shortage(error)
    if shortage is None:
        return 0
    print_line(
        f"this machine has no {shortage} left for netprobe; give it more, or take fewer "
        "hosts at once (--limit, --forks)"
    )
    return FAILED


def _tell_file(error: Exception) -> int:
    """Name the file or program that the kernel refuses; 0 where it is something else."""
    if not isinstance(error, OSError) or error.filename is None:
        return 0
    show_traceback(error)
    print_line(f"{os.fsdecode(error.filename)}: cannot be used: {error.strerror}")
    return FAILED


def _tell_bug(error: Exception) -> int:
    show_traceback(error)
    print_line(f"{type(error).__name__}: {error}")
    print_line("this is a bug in netprobe; run again with NETPROBE_DEBUG=1 for the traceback")
    return FAILED


def print_line(text: str) -> None:
    """Print a line of netprobe itself to standard error."""
    tell(f"netprobe: {text}")
