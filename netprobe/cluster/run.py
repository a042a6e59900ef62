"""A run in a cluster from its objects to its results; whatever happens, its namespace goes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from netprobe.batch.request import BatchRequest
from netprobe.batch.results import StoredRun
from netprobe.batch.script import HostScript
from netprobe.cluster.kubectl import ApiRefusal, Kubectl, add_remedy
from netprobe.cluster.manifest import LIMITS
from netprobe.cluster.pod_states import RUN_LABEL, list_pods
from netprobe.cluster.pods import ArrivedPods
from netprobe.errors import NetprobeError, RequestError
from netprobe.model.printable import clean

NAMESPACES = "/api/v1/namespaces"
NODES = "/api/v1/nodes"
# Keys of nodes that hold most of their bytes.
UNREAD = ("images", "managedFields", "annotations", "volumesAttached", "volumesInUse")
CLEAN = "`kubectl netprobe clean` removes it"
# When pods are looked at before the start: as parts of the time until then, and after how many
# seconds at most. With the second look those are missed that nothing has made.
EARLY = ((0.125, 15.0), (0.5, 60.0))
# So long after the end pods are listed: kubelets have to start the second container, and to report.
FIRST_S = 5.0
# So long after the margin of the clocks a node is waited for that may tell something yet: it may
# have much to write down.
LATE_S = 20.0
# How long after a list that has broken off another one is asked for; at last none.
AGAIN_S = (5.0, 20.0, 0.0)
# After which time a list is asked for again where nodes have more to tell, and how often: what has
# come is read within 20 s; the last message is there after 45, 45, 55 and 65 s.
FURTHER_S, MOST_FURTHER = 10.0, 25
MOST_WORDS = 500


class FoundRun(Struct, frozen=True):
    """A namespace of a run. ``is_ending``: somebody has deleted it, and the cluster is at it."""

    namespace: str
    uid: str
    run: str
    since: str
    is_ending: bool


class PodCounts(Struct, frozen=True):
    """What a DaemonSet says of its pods."""

    wanted: int
    there: int


async def list_runs(kube: Kubectl) -> list[FoundRun]:
    """List what is left of any run, and what goes on. Raises ApiRefusal."""
    pages = kube.get_pages(NAMESPACES, labelSelector=RUN_LABEL)
    return [_read_namespace(item) async for page in pages for item in page.get("items") or ()]


def _read_namespace(item: Mapping[str, Any]) -> FoundRun:
    meta = item["metadata"]
    return FoundRun(
        clean(meta["name"]),
        clean(meta.get("uid", "")),
        clean((meta.get("labels") or {}).get(RUN_LABEL, "")),
        clean(meta.get("creationTimestamp", "")),
        "deletionTimestamp" in meta,
    )


def refuse_second(found: Sequence[FoundRun]) -> None:
    """Raise NetprobeError where another run is there: its listeners hold the ports of this one."""
    for one in found:
        if not one.is_ending:
            raise NetprobeError(
                f"another run is there: {one.namespace}, since {one.since}; wait for its end, or, "
                f"where it has been killed, {CLEAN}"
            )


async def list_nodes(kube: Kubectl, selector: str) -> dict[str, Any]:
    """List nodes as `kubectl get nodes -o json` prints them. Raises ApiRefusal, RequestError."""
    query = {"labelSelector": selector} if selector else {}
    items = [
        _thin_node(one)
        async for page in kube.get_pages(NODES, **query)
        for one in page.get("items") or ()
    ]
    if not items:
        what = f"--nodes {selector}: no node has that" if selector else "the cluster has no node"
        raise RequestError(what)
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _thin_node(node: Any) -> Any:
    """Leave out what is large and says nothing here: the names of images, and who set which field.
    What is no node is left to whoever reads it."""
    if not isinstance(node, dict):
        return node
    return {
        key: {name: value for name, value in part.items() if name not in UNREAD}
        if isinstance(part, dict)
        else part
        for key, part in node.items()
    }


async def look_at_cluster(
    kube: Kubectl, selector: str, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Check that a run is possible, and give the nodes. Raises NetprobeError."""
    note = await kube.check_version()
    if note:
        tell(note)
    refuse_second(await list_runs(kube))
    return await list_nodes(kube, selector)


async def sleep_until(when: float) -> None:
    """Wait until a time of the clock, by which nodes probe."""
    await asyncio.sleep(max(0.0, when - time.time()))


class ClusterRun:
    """One run. ``tell``: prints a line on how far it is; ``wait``: until a time of the clock."""

    def __init__(
        self,
        kube: Kubectl,
        request: BatchRequest,
        scripts: Sequence[HostScript],
        objects: Sequence[Mapping[str, Any]],
        tell: Callable[[str], None],
        wait: Callable[[float], Awaitable[None]] = sleep_until,
    ) -> None:
        self._kube = kube.set_apart()
        self._request = request
        self._scripts = scripts
        self._arrived = ArrivedPods(request, scripts)
        self._arrived.gone = "the run ended before its results had arrived"
        self._objects = objects
        self._tell = tell
        self._wait = wait
        self._namespace = str(objects[0]["metadata"]["name"])
        self._place = f"{NAMESPACES}/{self._namespace}"
        self._daemons = f"/apis/apps/v1/namespaces/{self._namespace}/daemonsets"
        # Whether the namespace has been asked for, so that it may be there, and its uid once known.
        self._may_exist = False
        self._uid = ""
        self._starts_at = request.starts_at or 0.0

    def stored(self) -> StoredRun:
        """Give what has arrived."""
        return self._arrived.read()

    async def carry_out(
        self, ask_more: Callable[[ArrivedPods], Awaitable[None]] | None = None
    ) -> None:
        """Create, wait, read the pods, and again while nodes have more to tell; delete. Raises
        ApiRefusal where nothing could be started. ``ask_more``: asks what else is to be known
        while the pods are there.

        Each signal ends the step that goes on; the next ones follow.
        """
        if self._starts_at <= time.time():
            raise RequestError("--start: that is over before the first pod exists; give more time")
        try:
            await self._create_all()
            await self._wait_until_start()
            await self._read_rounds()
            if ask_more is not None:
                await ask_more(self._arrived)
        finally:
            await self._remove_all()

    async def _create_all(self) -> None:
        space, config, daemons = self._objects
        self._may_exist = True
        try:
            self._uid = await self._kube.create(NAMESPACES, space)
        except ApiRefusal as error:
            self._may_exist = not error.is_sure
            raise
        await self._kube.create(f"{self._place}/configmaps", config)
        await self._kube.create(self._daemons, daemons)

    async def _wait_until_start(self) -> None:
        """Look whether pods come. Raises ApiRefusal where the cluster makes none."""
        begun, counts = time.time(), None
        lead_s = self._starts_at - begun
        self._tell(
            f"run {self._request.run}: {len(self._scripts):,} nodes probe in {lead_s:.0f} s, for "
            f"at most {self._request.window_s:.0f} s"
        )
        for part, most_s in EARLY:
            await self._wait(begun + min(part * lead_s, most_s))
            counts = await self._count_pods()
            if counts is not None and counts.there >= counts.wanted > 0:
                break
        if counts is None:
            return
        is_short = counts.there < max(counts.wanted, 1)
        words = await self._find_refusal() if is_short else ""
        if words and not counts.there:
            raise ApiRefusal(f"the cluster makes no pod: {words}")
        self._arrived.refusal = words
        more = f"; the cluster makes no other: {words}" if words else ""
        self._tell(f"{counts.there:,} of {counts.wanted:,} pods are there{more}")

    async def _read_rounds(self) -> None:
        """Read the pods when all nodes have probed; and round by round, while the API answers, what
        had no room in the first messages, and nodes that are not done, as their clocks are late."""
        request = self._request
        over = self._starts_at + request.window_s + request.margin_s
        when = over + FIRST_S
        for number in range(2, MOST_FURTHER + 3):
            try:
                await self._wait(when)
            finally:
                is_whole = await self._read_pods()
            if not is_whole or number > MOST_FURTHER + 1:
                return
            begun, when = when, self._choose_next(when, over + request.margin_s + LATE_S)
            if when <= begun:
                return
            self._tell(
                f"{self._arrived.word_waiting(len(LIMITS))}: round {number} of at most "
                f"{MOST_FURTHER + 1} in {when - max(begun, time.time()):.0f} s"
            )

    def _choose_next(self, begun: float, late: float) -> float:
        """Choose when the next round is; not after ``begun`` where none is needed. ``late``: until
        when a node is waited for that has told nothing."""
        nodes, _ = self._arrived.count_waiting(len(LIMITS))
        if not nodes and not self._arrived.count_late():
            return begun
        following = max(begun, time.time()) + FURTHER_S
        return following if nodes else min(following, late)

    async def _count_pods(self) -> PodCounts | None:
        """Ask the DaemonSet; None where the API does not answer: the nodes go on without it."""
        try:
            found = await self._kube.get(f"{self._daemons}/netprobe")
        except ApiRefusal:
            return None
        status = found.get("status", {})
        names = ("desiredNumberScheduled", "currentNumberScheduled")
        return PodCounts(*(int(status.get(name, 0)) for name in names))

    async def _find_refusal(self) -> str:
        """Say why the cluster makes no pod, in its own words; nothing where it has none."""
        try:
            pages = self._kube.get_pages(
                f"{self._place}/events", fieldSelector="reason=FailedCreate,type=Warning"
            )
            events = [one async for page in pages for one in page["items"]]
        except (ApiRefusal, LookupError):
            return ""
        # Early on an account may not have been there yet.
        last = max(events, key=lambda one: str(one.get("lastTimestamp")), default=None) or {}
        return add_remedy(clean(" ".join(last.get("message", "").split()))[:MOST_WORDS])

    async def _read_pods(self) -> bool:
        """Read all pods; where the list breaks off, again, and at last what has come of it. Tell
        whether all have been read."""
        for pause_s in AGAIN_S:
            refusal = await self._try_to_read()
            if refusal is None:
                self._arrived.gone = ""
                return True
            if self._arrived.gone:
                self._arrived.gone = f"its results have not arrived: {refusal}"
            if pause_s:
                await self._wait(time.time() + pause_s)
        self._tell(f"{refusal}; {len(self._arrived):,} pods have arrived")
        return False

    async def _try_to_read(self) -> NetprobeError | None:
        """Read pods, page by page; give why some are missing."""
        try:
            place = f"{self._place}/pods"
            async for page in self._kube.get_pages(place, labelSelector=RUN_LABEL):
                self._arrived.take(list_pods(page, "the list of pods"))
        except NetprobeError as error:
            return error
        return None

    async def _remove_all(self) -> None:
        """Delete the namespace, and with it all else; never one of somebody else."""
        if not self._may_exist:
            return
        left = f"namespace {self._namespace} may be left"
        try:
            uid = self._uid or await self._find_uid()
            if not uid:
                self._tell(f"{left}, if the API creates it late; {CLEAN}")
                return
            await self._kube.delete(self._place, uid)
            self._tell(f"namespace {self._namespace} is deleted, and all that was in it")
        except ApiRefusal as error:
            self._tell(f"{left} ({error}); {CLEAN}")
        except asyncio.CancelledError:
            self._tell(f"{left}; {CLEAN}")
            raise

    async def _find_uid(self) -> str:
        """Find the uid of this run's namespace; empty where there is none. Raises ApiRefusal."""
        found = await list_runs(self._kube)
        return next((one.uid for one in found if one.run == self._request.run), "")


async def remove_runs(
    kube: Kubectl, found: Sequence[FoundRun], tell: Callable[[str], None]
) -> None:
    """Delete these namespaces, and say of each what became of it. Raises NetprobeError where some
    stay, after all have been tried."""
    stay = 0
    for one in found:
        done = "is being deleted already" if one.is_ending else "is deleted"
        try:
            if not one.is_ending:
                await kube.delete(f"{NAMESPACES}/{one.namespace}", one.uid)
        except ApiRefusal as error:
            stay += 1
            done = f"stays: {error}"
        tell(f"{one.namespace} (since {one.since}) {done}")
    if stay:
        raise NetprobeError(f"{stay} of {len(found)} namespaces could not be deleted")
