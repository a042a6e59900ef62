"""The private folder of a run that an engine drives: results, words, and who removes it.

Nothing else is written on the host. The agent removes the folder at its end. A shell that waits for
the agent's end, however that comes, removes what the agent could not.
"""

import os
import stat
from typing import Iterator, Optional

from ..host.hello import read_text
from ..wire.batch import FOLDER_NAME, PID_FILE, RESULTS_FILE, WORDS_FILE, BatchStart
from ..wire.frames import PROCESS_NAME
from .life import WrongUse

# What lies in memory comes first.
PLACES = ("/run", "/dev/shm", "/tmp")
GUARD = 'trap "" HUP INT TERM; read -r _; rm -rf -- "$0"'


class RunFolder:
    """A folder of mode 0700, which ``make`` makes anew."""

    def __init__(self, path: str) -> None:
        self.path = path

    def inside(self, name: str) -> str:
        """Give the path of a file in it."""
        return os.path.join(self.path, name)

    def is_alive(self) -> bool:
        """Tell whether the agent that made it lives, in whatever network namespace."""
        pid = read_text(self.inside(PID_FILE)).strip()
        return pid.isdigit() and read_text("/proc/%s/comm" % pid).strip() == PROCESS_NAME

    def write_pid(self) -> None:
        """Say which process this run is."""
        with open(self.inside(PID_FILE), "w") as file:
            file.write("%d\n" % os.getpid())

    def open_results(self) -> int:
        """Create the file of results."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
        return os.open(self.inside(RESULTS_FILE), flags, 0o600)

    def open_words(self) -> int:
        """Create the pipe by which commands come; it never ends, because we hold both ends."""
        os.mkfifo(self.inside(WORDS_FILE), 0o600)
        return os.open(self.inside(WORDS_FILE), os.O_RDWR | os.O_NONBLOCK)

    def start_guard(self) -> int:
        """Start the shell that removes the folder when we are gone; gives what keeps it waiting."""
        waiting, holding = os.pipe()
        if os.fork():
            os.close(waiting)
            return holding
        try:
            os.setsid()
            os.dup2(waiting, 0)
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, 1)
            os.dup2(nothing, 2)
            # Whoever waits for the end of our other descriptors must not wait for this shell.
            os.closerange(3, 256)
            os.execv("/bin/sh", ["sh", "-c", GUARD, self.path])
        finally:
            os._exit(1)

    def remove(self) -> None:
        """Remove it, as far as it is there and our own."""
        try:
            known = os.lstat(self.path)
            if not stat.S_ISDIR(known.st_mode) or known.st_uid != os.geteuid():
                return
            for name in os.listdir(self.path):
                os.unlink(self.inside(name))
            os.rmdir(self.path)
        except OSError:
            pass  # the guard removes what is left


def make_folder(start: BatchStart) -> RunFolder:
    """Make the folder of a run; nobody runs it, so what is there is a dead run's.

    Raises WrongUse where none can be made.
    """
    why = ""
    for path in list_paths(start):
        if RunFolder(path).is_alive():
            raise WrongUse("it goes on here already, in another network namespace")
        RunFolder(path).remove()
        try:
            os.mkdir(path, 0o700)
            return RunFolder(path)
        except OSError as error:
            why = "%s%s%s: %s" % (why, ", " if why else "", path, error.strerror)
    raise WrongUse("no folder can be made for the run (%s)" % why)


def find_folder(start: BatchStart) -> Optional[RunFolder]:
    """Find the folder of the run that goes on here."""
    for path in list_paths(start):
        if os.path.isfile(os.path.join(path, PID_FILE)):
            return RunFolder(path)
    return None


def list_paths(start: BatchStart) -> Iterator[str]:
    """List where the folder may be, in the order in which the places are tried."""
    for place in (*PLACES, os.environ.get("HOME", "")):
        if place:
            yield os.path.join(place, FOLDER_NAME % (start.run, start.host))
