"""Asks a cluster's API through ``kubectl`` (or ``oc``), with the user's own way and credentials.

Each call is one request of the API (``--raw``). Other calls of kubectl ask first which groups of
the API there are, and wait for those whose servers the cluster cannot reach.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlencode

from msgspec import Struct
from msgspec.structs import replace

from netprobe.children import allow_unread_input
from netprobe.errors import NetprobeError, RequestError
from netprobe.model.printable import clean

PROGRAMS = ("kubectl", "oc")
REQUEST_S = 30
# Plugins for credentials may wait for somebody who logs in.
CALL_S = 90.0
PAGE = 500
MOST_SKEW = 2
MOST_WORDS = 600

_FROM_SERVER = re.compile(r"Error from server(?: \((\w+)\))?: ")
_BEGINNINGS = (
    "Error from server", "error:", "Error:", "The connection to the server",
    "Unable to connect to the server",
)  # fmt: skip
# What helps, by what the words of the API have.
REMEDIES = (
    ("exceeded quota", "the namespace needs a larger quota, or none"),
    ("violates PodSecurity", "the namespace needs the level privileged, for hostNetwork"),
    (
        "security context constraint",
        "give the service account of the namespace an SCC with host network, host ports, NET_RAW "
        "and NET_BIND_SERVICE",
    ),
    ("denied the request", "ask for an exception from that policy for the namespace"),
    ("is forbidden: User", "docs/cluster.md lists the rights that a run needs"),
    ("(Unauthorized)", "log in to the cluster first"),
)
_MINOR = re.compile(r"\d+")
# Answers after which what was asked for may have been done, or be done yet: by the API's word, or
# by those of kubectl for the status of a proxy.
_UNSURE = ("Timeout", "ServerTimeout", "InternalError", "ServiceUnavailable")
_UNSURE_STATUS = "status code 5"


class ApiRefusal(NetprobeError):
    """The API, or kubectl, did not do what it was asked for.

    ``reason``: the API's word, such as Forbidden. ``is_sure``: the API itself has refused; else it
    may have done it, or may do it yet.
    """

    def __init__(self, words: str, reason: str = "", *, is_sure: bool = False) -> None:
        super().__init__(words)
        self.reason = reason
        self.is_sure = is_sure


class Kubectl(Struct, frozen=True):
    """The program, and ``words`` that say which cluster.

    ``is_apart``: a Ctrl-C at the terminal does not end it, because something is to be cleaned up.
    """

    program: str
    words: tuple[str, ...] = ()
    is_apart: bool = False

    def set_apart(self) -> Kubectl:
        """Give one that a Ctrl-C at the terminal does not end."""
        return replace(self, is_apart=True)

    async def get(self, path: str, **query: str) -> Mapping[str, Any]:
        """Get what is at a path. Raises ApiRefusal."""
        where = f"{path}?{urlencode(query)}" if query else path
        return _read_object(await self._call_program(f"get {path}", "get", "--raw", where), path)

    async def get_text(self, path: str, **query: str) -> str:
        """Get what is at a path and is no object. Raises ApiRefusal."""
        where = f"{path}?{urlencode(query)}"
        raw = await self._call_program(f"get {path}", "get", "--raw", where)
        return raw.decode("utf-8", "replace")

    async def get_pages(self, path: str, **query: str) -> AsyncIterator[Mapping[str, Any]]:
        """Get a list, page by page. Raises ApiRefusal."""
        token = ""
        while True:
            further = {"continue": token} if token else {}
            page = await self.get(path, **query, limit=str(PAGE), **further)
            yield page
            token = (page.get("metadata") or {}).get("continue") or ""
            if not token:
                return

    async def create(self, path: str, made: Mapping[str, Any]) -> str:
        """Create an object, and give its uid. Raises ApiRefusal."""
        what = f"create {made['kind']} {made['metadata']['name']}"
        data = json.dumps(made).encode()
        raw = await self._call_program(what, "create", "--raw", path, "-f", "-", data=data)
        return str((_read_object(raw, what).get("metadata") or {}).get("uid", ""))

    async def delete(self, path: str, uid: str) -> None:
        """Delete the object of this uid, and none that has its name now; that it is not there is
        fine. Raises ApiRefusal."""
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        data = json.dumps(options).encode()
        try:
            await self._call_program(
                f"delete {path}", "delete", "--raw", path, "-f", "-", data=data
            )
        except ApiRefusal as error:
            if error.reason not in ("NotFound", "Conflict"):
                raise

    async def check_version(self) -> str | None:
        """Check that client and server fit; give a note where the client is much newer.

        Raises RequestError for a client that is much older, ApiRefusal where no API answers.
        """
        raw = await self._call_program("reach the cluster", "version", "-o", "json")
        found = _read_object(raw, "version")
        client, server = (_read_minor(found.get(f"{one}Version")) for one in ("client", "server"))
        if client is None or server is None or abs(client - server) <= MOST_SKEW:
            return None
        words = f"{self.name} is 1.{client}, and the cluster 1.{server}"
        if client > server:
            return f"{words}: they are more than {MOST_SKEW} minor versions apart"
        raise RequestError(
            f"{words}: a client more than {MOST_SKEW} minor versions older is not supported; "
            "install a newer one"
        )

    @property
    def name(self) -> str:
        """Kubectl or oc."""
        return os.path.basename(self.program)

    async def _call_program(self, what: str, *words: str, data: bytes | None = None) -> bytes:
        """Call the program, and give what it printed. Raises ApiRefusal."""
        process = await asyncio.create_subprocess_exec(
            self.program, *self.words, *words, f"--request-timeout={REQUEST_S}s",
            stdin=asyncio.subprocess.DEVNULL if data is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            start_new_session=self.is_apart,
        )  # fmt: skip
        allow_unread_input(process)
        try:
            async with asyncio.timeout(CALL_S):
                printed, errors = await process.communicate(data)
        except TimeoutError:
            raise ApiRefusal(f"cannot {what}: no answer in {CALL_S:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise _word_refusal(what, errors.decode("utf-8", "replace"), process.returncode)
        return printed


def find_kubectl(words: tuple[str, ...] = ()) -> Kubectl:
    """Find the program. Raises RequestError where there is none."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        raise RequestError(
            f"neither {' nor '.join(PROGRAMS)} is on PATH: install one, or use `netprobe cluster "
            "manifest` and carry its objects to a machine that has one"
        )
    return Kubectl(program, words)


def _read_object(raw: bytes, what: str) -> Mapping[str, Any]:
    """Read an object of the API. Raises ApiRefusal: a proxy may answer with a page."""
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ApiRefusal(f"{what}: the answer is no object of the Kubernetes API")
    return found


def _read_minor(version: Any) -> int | None:
    """Read the minor version of Kubernetes 1; None for others, and for none."""
    said = version if isinstance(version, dict) else {}
    minor = _MINOR.match(str(said.get("minor", "")))
    return int(minor[0]) if minor and said.get("major") == "1" else None


def _word_refusal(what: str, errors: str, status: int) -> ApiRefusal:
    """Give the words of kubectl as one line, with what helps."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    first = next((at for at, line in enumerate(lines) if line.startswith(_BEGINNINGS)), None)
    text = " ".join(lines[-1:] if first is None else lines[first:])
    answer = _FROM_SERVER.match(text)
    said = text[answer.end() :] if answer else text.removeprefix("error: ")
    said = clean(said)[:MOST_WORDS] or f"it ended with status {status}"
    words = f"cannot {what}: {said}"
    reason = answer[1] or "" if answer else ""
    is_sure = answer is not None and reason not in _UNSURE and _UNSURE_STATUS not in said
    return ApiRefusal(add_remedy(words), reason, is_sure=is_sure)


def add_remedy(words: str) -> str:
    """Add what helps to words of the API, where that is known."""
    remedy = next((then for sign, then in REMEDIES if sign in words.partition(": ")[2]), "")
    return f"{words}: {remedy}" if remedy else words
