"""Tells others what begins and ends: an Alertmanager, a webhook, a program."""

from __future__ import annotations

import asyncio
import json
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import httpx

from netprobe.children import allow_unread_input
from netprobe.errors import NetprobeError, RequestError
from netprobe.history.ledger import HistoryFile
from netprobe.model.outage import History, Outage
from netprobe.model.printable import clean
from netprobe.report.page.marks import word_marks
from netprobe.report.page.times import word_begin, word_end
from netprobe.watch.asking_for import RuleTexts

# How long one try may take, and the pauses between tries.
TRY_S: Final = 10.0
PAUSES_S: Final = (1.0, 60.0)
# An Alertmanager forgets an alert that is not sent again for so many rounds.
ROUNDS_AHEAD: Final = 3

Json = dict[str, Any]


class Receiver(ABC):
    """Somebody who is told. ``name`` is what the option says."""

    # Whether it is told again and again of what goes on.
    repeats = False

    def __init__(self, name: str, where: str) -> None:
        self.name = name
        self.where = where

    @property
    def place(self) -> str:
        """Which one it is, in words that may be printed: an address may have a secret in it."""
        kind = self.name.partition("=")[0]
        return f"{kind}={httpx.URL(self.where).netloc.decode('ascii')}"

    @abstractmethod
    async def send(self, alert: Json) -> str:
        """Tell. Gives why that must be tried again; empty words: it was told."""


class AlertmanagerReceiver(Receiver):
    """An Alertmanager: it groups and sends on."""

    repeats = True

    async def send(self, alert: Json) -> str:
        """Post the alert as it is."""
        keys = ("labels", "annotations", "startsAt", "endsAt")
        some = [{key: alert[key] for key in keys}]
        return await _post_json(f"{self.where.rstrip('/')}/api/v2/alerts", some)


class WebhookReceiver(Receiver):
    """What takes the body of Alertmanager's webhook."""

    async def send(self, alert: Json) -> str:
        """Post the body."""
        return await _post_json(self.where, make_webhook_body(alert))


class ProgramReceiver(Receiver):
    """A program that gets such a body on its standard input; no shell."""

    @property
    def place(self) -> str:
        """The program."""
        return self.name

    async def send(self, alert: Json) -> str:
        """Start it; its exit status says whether it took the alert."""
        try:
            process = await asyncio.create_subprocess_exec(
                self.where, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL
            )
            allow_unread_input(process)
            try:
                body = json.dumps(make_webhook_body(alert)).encode()
                await asyncio.wait_for(process.communicate(body), TRY_S)
                return f"exit status {process.returncode}" if process.returncode else ""
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
        except TimeoutError:
            return f"it did not end within {TRY_S:g} s"
        except OSError as error:
            return error.strerror or str(error)


_KINDS: Final[Mapping[str, Callable[[str, str], Receiver]]] = {
    "alertmanager": AlertmanagerReceiver,
    "webhook": WebhookReceiver,
    "exec": ProgramReceiver,
}


def read_receiver(text: str) -> Receiver:
    """Read ``--notify``. Raises RequestError."""
    kind, _, where = text.partition("=")
    if kind not in _KINDS or not where:
        known = "alertmanager=URL, webhook=URL or exec=PROGRAM"
        raise RequestError(f"--notify {text}: expected {known}")
    if kind != "exec" and not _is_web_address(where):
        raise RequestError(f"--notify {text}: expected a URL with http:// or https://")
    if kind == "exec" and shutil.which(where) is None:
        words = "expected a program that may be started, without arguments"
        raise RequestError(f"--notify {text}: {words}")
    return _KINDS[kind](text, where)


def _is_web_address(text: str) -> bool:
    try:
        url = httpx.URL(text)
        # https://www.rfc-editor.org/rfc/rfc9293#section-3.1: a port has 16 bits.
        return url.scheme in ("http", "https") and bool(url.host) and (url.port or 0) < 1 << 16
    except (httpx.InvalidURL, UnicodeError):
        return False


async def _post_json(url: str, body: Any) -> str:
    """Post; gives why it was not taken, else empty words."""
    try:
        async with httpx.AsyncClient(timeout=TRY_S) as client:
            answer = await client.post(url, json=body)
    except Exception as error:  # whatever is wrong, such as with a proxy's address: no watch ends
        return clean(str(error)) or type(error).__name__
    return "" if answer.is_success else f"HTTP status {answer.status_code}"


def make_webhook_body(alert: Json) -> Json:
    """Make the body of Alertmanager's webhook, version 4, of one alert."""
    return {
        "version": "4",
        "groupKey": f"{{}}:{{finding={json.dumps(alert['labels']['finding'])}}}",
        "truncatedAlerts": 0,
        "status": alert["status"],
        "receiver": "netprobe",
        "groupLabels": {"finding": alert["labels"]["finding"]},
        "commonLabels": alert["labels"],
        "commonAnnotations": alert["annotations"],
        "externalURL": "",
        "alerts": [alert],
    }


def make_alert(outage: Outage, ends: float | None, rules: str) -> Json:
    """Make the alert of an outage; ``ends``: when it is over if nothing more is heard of it."""
    times = outage.times
    over = times.end if times.end is not None else ends
    annotations = {
        "summary": outage.title,
        "description": f"{word_begin(times)}; {word_end(times)}",
        "where": ", ".join(outage.cause.where),
        "rejected_by": outage.cause.rejected_by or "",
        "route": "; ".join(word_marks(outage)),
        "firewall_request": rules,
    }
    return {
        "status": "firing" if outage.is_open else "resolved",
        "labels": {
            "alertname": "NetprobeOutage",
            "finding": outage.id,
            "matrix": outage.members[0].key[0],
            "requirement": outage.requirements[0],
            "reason": outage.cause.reason,
        },
        "annotations": {name: text for name, text in annotations.items() if text},
        "startsAt": _word_instant(times.first_bad),
        "endsAt": _word_instant(over) if over is not None else "0001-01-01T00:00:00Z",
        "generatorURL": "",
        "fingerprint": outage.id.rjust(16, "0"),
    }


def _word_instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class Notifier:
    """Tells one receiver of each outage that it begins and that it ends, however long it is away.

    What it was told is in the history, so that a restart tells nothing twice and loses nothing.
    """

    def __init__(
        self,
        receiver: Receiver,
        ledger: HistoryFile,
        rules: RuleTexts,
        every_s: float,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._receiver = receiver
        self._ledger = ledger
        self._rules = rules
        self._every_s = every_s
        self._tell = tell
        self._is_away = False
        self._told = ledger.told(receiver.name)
        self._history: History | None = None
        self._changed = asyncio.Event()

    def take_history(self, history: History) -> None:
        """Take what is known; the first time what has ended already is nothing to tell."""
        if self._told is None:
            ended = {one.id: "resolved" for one in history.outages if not one.is_open}
            self._told = {"": "begun", **ended}
            self._keep_told(self._told)
        self._history = history
        self._changed.set()

    async def run(self) -> None:
        """Tell, until it is cancelled."""
        pause_s = PAUSES_S[0]
        while True:
            self._changed.clear()
            if await self._tell_due():
                pause_s = PAUSES_S[0]
                wait_s = self._every_s if self._receiver.repeats else None
            else:
                wait_s = pause_s
                pause_s = min(2 * pause_s, PAUSES_S[1])
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), wait_s)

    async def _tell_due(self) -> bool:
        """Tell what is due; False where some of it could not be told."""
        due = list(self._find_due())
        now = datetime.now(UTC).timestamp()
        ends = now + ROUNDS_AHEAD * self._every_s if self._receiver.repeats else None
        trouble = ""
        for outage in due:
            alert = make_alert(outage, ends, self._rules.find(outage))
            why = await self._receiver.send(alert)
            trouble = why or trouble
            if not why:
                self._note_told({outage.id: alert["status"]})
        if due:
            self._tell_trouble(trouble)
        return not trouble

    def _tell_trouble(self, words: str) -> None:
        """Say once that it is away, and once that it is back."""
        if bool(words) != self._is_away:
            self._is_away = bool(words)
            again = f"cannot be told, and is tried again: {words}" if words else "is told again"
            self._tell(f"{self._receiver.place} {again}")

    def _find_due(self) -> Iterator[Outage]:
        told: Mapping[str, str] = self._told or {}
        for outage in self._history.outages if self._history is not None else ():
            status = "firing" if outage.is_open else "resolved"
            again = outage.is_open and self._receiver.repeats
            if again or told.get(outage.id) != status:
                yield outage

    def _note_told(self, told: Mapping[str, str]) -> None:
        assert self._told is not None
        new = {name: status for name, status in told.items() if self._told.get(name) != status}
        if new:
            self._told |= new
            self._keep_told(new)

    def _keep_told(self, told: Mapping[str, str]) -> None:
        """Where the history cannot be written, a restart may tell this once more."""
        with suppress(NetprobeError):
            self._ledger.keep_told(self._receiver.name, told)
