"""``netprobe``, and ``python -m netprobe``."""

try:
    import os
    import signal

    # A Ctrl-C while the rest is still being imported is no traceback, wherever it strikes. Who
    # ignores Ctrl-C (a shell's background) goes on to ignore it.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, lambda _number, _frame: os._exit(128 + signal.SIGINT))
    import gc
    import sys
    from typing import NoReturn
except KeyboardInterrupt:
    raise SystemExit(130) from None


def run() -> NoReturn:
    """Run the command line."""
    # What is imported stays: looking for garbage in it takes longer than printing the help.
    gc.disable()
    from netprobe.cli.main import main  # noqa: PLC0415

    gc.freeze()
    gc.enable()
    main()


def run_in_kubectl() -> NoReturn:
    """Run ``kubectl netprobe``, which is ``netprobe cluster``; its version is netprobe's."""
    if sys.argv[1:2] != ["--version"]:
        sys.argv.insert(1, "cluster")
    run()


if __name__ == "__main__":
    run()
