"""What the keys of ``netprobe.run/1`` mean: for its schema, and for the page about results."""

from __future__ import annotations

from collections.abc import Mapping

RUN_KEYS: Mapping[str, str] = {
    "schema": "`netprobe.run/1`.",
    "netprobe_version": "The version that wrote it.",
    "started_at": "UTC, ISO 8601 with `Z`.",
    "elapsed_s": "Seconds.",
    "phases": "Seconds by phase: `starts`, `listeners`, `probes`, `second looks`, `walks`, "
    "`waiting`, `own work`; together about `elapsed_s`.",
    "complete": "Every planned flow has its result.",
    "interrupted": "Somebody stopped the run (Ctrl-C, SIGTERM, SIGHUP).",
    "planned_flows": "How many flows (ports, not pairs) the plan had, less the skipped ones.",
    "selection": "Null, or a sentence: the filters, and how many flows they left.",
    "some_ports": "Whether filters may have left ports out between hosts that were probed: then"
    " no finding says that nothing gets through.",
    "earlier": "Null, or a sentence: what `--resume` or `--retry` kept.",
    "sample": "Null, or a sentence: what part was probed.",
    "trust": "Null, or a sentence: hosts could have written each other's results (one "
    "bundle was for all of them).",
    "baseline": "Null, or a sentence: what is new since the run of `--baseline`.",
    "coverage": "Null, or how `--cover zones` covered the plan.",
    "live": "Whether the run was `--live`; missing where that is not known.",
    "names_set": "How many names hosts look up; with 0 no name, and so no name server, was "
    "checked.",
    "quality_samples": "With `--quality`: how many samples each way gets, where that is one "
    "number.",
    "accepted": "The entries of `--accepted`, each with the keys of its file (`ports` as a "
    "list of `[first, last]`), `state`, `flows` (that fail as it says), `passing`"
    " and `days_left` (null without an end).",
    "matrices": "`name`, `settings` and `document` (`title`, `publisher`, `retrieved`); lists"
    " stay lists; `names` are the settings whose values hosts look up.",
    "requirements": "The rows of the plan, one element a protocol.",
    "results": "What became of each flow, in plan order.",
    "findings": "Failures by their causes.",
    "overview": "The summary of reports for people.",
    "hosts": "Every host of the plan: `state` (`agent`, `none`, `failed`, `lost`, or "
    "`unknown` where the run ended before), `words` (ssh's own, and the fix), "
    "`roles` (of the matrices: its own first, then what they imply), `cost` (what"
    " missing rights cost), `facts` (what its agent reported), `host_key` (null, "
    "or why ssh does not trust its key: `state` is `unknown` or `changed`) ...",
    "notes": "Sentences for the reader.",
    "summary": "Counts of **flows**: `pass`, `blocked`, `exposed`, `inconclusive`, "
    "`not_tested`, `covered` (never probed, and no pass); `refusals` are passes "
    "that rest on a refusal; `accepted`, `waived`, `optional`, `known` and "
    "`spared` did not pass and do not decide, each counted once (and in the count"
    " of its verdict). `skipped` counts requirements.",
    "changes": "With `--retry` and `--baseline`: counts of flows by what became of them.",
    "warnings": "`text` and `count` of every warning that some result carries.",
    "refusals": "The passes that rest on a refusal alone, by destination: `destination`, "
    "`address`, `sources`, `ports` (for people), `count`; nothing proved that a "
    "listener there can be reached.",
    "skipped": "`matrix`, `requirement`, `reason`, `source` or `destination` where the reason "
    "is about a host, `flows` (how many required ones start at a source where nothing can run) "
    "and `roles` (of which no host has one, though a required row needs it).",
}
RESULT_KEYS: Mapping[str, str] = {
    "matrix": "The matrix that the flow is of.",
    "requirement": "The requirement of that matrix.",
    "purpose": "What the row is for.",
    "row": "The table of the document.",
    "optional": "Whether the row is optional.",
    "expect": "`allowed` or `denied`.",
    "waived": "Null, or the reason.",
    "source": "The host that the flow starts at.",
    "destination": "The host that it goes to.",
    "address": "The address that was probed.",
    "protocol": "`tcp`, `udp`, `icmp` or `ipproto/4`.",
    "port": "The first port; null where the protocol has none.",
    "end_port": "The last port. To count flows, count `end_port - port + 1`.",
    "verdict": "`pass`, `blocked`, `exposed`, `inconclusive` or `not-tested`.",
    "state": "nmap's word, or `unreachable` or `unknown`.",
    "reason": "One word for the cause: nmap's where it has one.",
    "proof": "How a `pass` is known.",
    "where": "All places where the failure can be; one alone is proven.",
    "rejected_by": "The router, host or proxy that refused, or null.",
    "last_hop": "The last router that still answered, or null.",
    "next_hop": "The source's own next hop, where that is at fault, or null. Of `resolver`: the "
    "one on the way to silent name servers.",
    "because": "One sentence with the evidence.",
    "warnings": "Sentences that never change the verdict.",
    "rtt_ms": "Null where nothing answered.",
    "attempts": "How often netprobe asked.",
    "path_mtu_bytes": "Only of `path-mtu`, and of TCP flows with the reason `mtu-black-hole`: the "
    "largest unfragmented IP packet that arrives (absent where none could be "
    "measured).",
    "needed_mtu_bytes": "The size needed there.",
    "holder": "Only where a process that holds the port is (or may be) in the way: process "
    "and bind address.",
    "accepted": "Only where somebody accepted the failure: `id`, `reason`, `owner`, `until`.",
    "known": "Only with `--fail-on new`, where the baseline has the failure too: its file.",
    "device": "Only where a network card is at fault (`overlay-offload`): the interface of the "
    "host that `where` names.",
    "driver": "The driver of that card.",
    "any_of": "Only of rows of which one is enough for a pair of hosts: the name that they share.",
    "spared": "Only of a failure beside which another such row passes: the requirement that"
    " does. It does not decide.",
    "also": "Only where other matrices of the run demand the same flow: their rows, each "
    "`matrix`, `requirement` and `purpose`. The written name is the "
    "alphabetically first; any of them finds the flow in other runs and in files "
    "of accepted flows.",
    "name_servers": "Only of `resolver`: the name servers that were asked.",
    "quality": "Only of `ROW/quality` that was measured: `by` (`tcp`, `udp` or `icmp`), `samples`, "
    "`lost`, times in microseconds (`jitter_us`: the mean difference of neighbouring round "
    "trips), intervals that hold the true value 95 times of 100 (`..._low`, `..._high`; "
    "null: no bound), the `limits` of the row, and `bars`, the distribution.",
    "sent_from": "Only of a failure whose source sends from an address that the inventory does not "
    "have: that address.",
    "came_from": "Only of a failure whose source is translated on the way: the address that the "
    "destination saw.",
    "stops": "Only where the row of the matrix says what does not work while it fails.",
    "story": "Only of what was probed and is not `pass`: where the packets were seen.",
}
FINDING_KEYS: Mapping[str, str] = {
    "number": "The same in every report of the run.",
    "kind": "What its flows share: `pair`, `source`, `destination`, `zone` ...",
    "verdict": "The verdict of its flows.",
    "title": "One line for people: cause, place and size.",
    "advice": "What to do.",
    "count": "How many flows.",
    "where": "The places that all members leave possible.",
    "rejected_by": "Null where the members have several.",
    "last_hop": "Null where the members have several.",
    "owner": "Who must act, as in the overview.",
    "stops": "Only where rows say it: what does not work.",
    "everything": "Nothing that was probed gets through between its hosts.",
    "evidence": "Only with `--evidence`: the file with packets of it.",
    "no_evidence": "Only with `--evidence`: why there is no such file.",
    "members": "`requirement`, `source`, `destination`, `address`, `protocol`, `port`, "
    "`end_port` and `matrix` (not in files of 0.1.0) of each result.",
}
OVERVIEW_KEYS: Mapping[str, str] = {
    "can_start": "`yes` (the whole plan was asked, and every required flow passes, is covered "
    "or accepted, or fails in a row that stops pods, a feature or monitoring; so none "
    "starts where nothing can run), `no` (a row that stops the installation or nodes is "
    "`blocked` or `exposed`), or `cannot be told`.",
    "reasons": "Sentences: why.",
    "beside": "Sentences: what else fails or was not asked.",
    "causes": "How many findings count for the exit status.",
    "who": "Who must act: `owner` (`network`: who keeps what is between the hosts; "
    "`hosts`: who keeps the hosts and their services; `ourselves`; `unclear`: the"
    " places that are left are several people's), `findings` (numbers), `rules` "
    "(firewall rules that these need; null where more than 5,000 results fail) "
    "and `untested` (flows that could not be tested).",
}
