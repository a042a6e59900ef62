"use strict";
// The data of the run, as island.py wrote it: unpacked into one array a column,
// because an object for each of a million flows would take seconds.

const FATES = ["blocked", "exposed", "inconclusive", "not-tested", "excused", "covered", "pass"]; // from the worst
const PASS = FATES.indexOf("pass");
const SIGNS = { blocked: "\u2717", exposed: "!", inconclusive: "?", "not-tested": "\u00b7", excused: "~", covered: "\u2248", pass: "\u2713" };
// What is counted of a pair that did not all pass.
const FAILED = ["blocked", "exposed", "inconclusive", "not-tested", "accepted", "waived", "spared", "optional", "known"];
const ANY_ROLE = "any host";

const data = JSON.parse(document.getElementById("data").textContent);
const flows = unpackFlows();

/** Walk over all results: block, source, end (of the block), first and last port, class. */
function walkResults(take) {
  data.blocks.forEach((block, number) => {
    const width = block.ends.length;
    let at = 0;
    const next = () => {
      while (!block.local && at < block.sources.length * width &&
             block.sources[Math.floor(at / width)] === block.ends[at % width][0]) at++;
      return at++;
    };
    for (let run = 0; run < block.runs.length; run += 2) {
      const pattern = block.runs[run];
      for (let left = block.runs[run + 1]; left > 0; left--) {
        const pair = next();
        if (pattern >= 0) {
          takePattern(pattern, (first, last, kind) =>
            take(number, block.sources[Math.floor(pair / width)], pair % width, first, last, kind));
        }
      }
    }
  });
}

/** Walk over the port ranges of a pattern, with the class of each. */
function takePattern(number, take) {
  const [shape, ...runs] = data.patterns[number];
  const ports = data.shapes[shape];
  let at = 0;
  for (let run = 0; run < runs.length; run += 2) {
    for (let left = runs[run + 1]; left > 0; left--, at += 2) take(ports[at], ports[at + 1], runs[run]);
  }
}

function unpackFlows() {
  const sizes = data.patterns.map((_, number) => {
    let size = 0;
    takePattern(number, () => size++);
    return size;
  });
  let count = 0;
  for (const block of data.blocks) {
    for (let run = 0; run < block.runs.length; run += 2) {
      if (block.runs[run] >= 0) count += sizes[block.runs[run]] * block.runs[run + 1];
    }
  }
  const found = {
    count,
    block: new Uint32Array(count), source: new Uint32Array(count), end: new Uint32Array(count),
    first: new Uint16Array(count), last: new Uint16Array(count), kind: new Uint32Array(count),
  };
  let at = 0;
  walkResults((block, source, end, first, last, kind) => {
    found.block[at] = block;
    found.source[at] = source;
    found.end[at] = end;
    found.first[at] = first;
    found.last[at] = last;
    found.kind[at++] = kind;
  });
  return found;
}

/** How many flows a result stands for. */
function countOf(row) {
  return flows.last[row] - flows.first[row] + 1;
}

function blockOf(row) { return data.blocks[flows.block[row]]; }
function classOf(row) { return data.classes[flows.kind[row]]; }
function sourceOf(row) { return data.hosts[flows.source[row]]; }
/** All rows that demand the flows of a block: its own, and those of other matrices. */
function rowsOf(block) { return [block, ...(block.also ?? [])]; }
function endOf(row) { return blockOf(row).ends[flows.end[row]]; }
function destinationOf(row) { return data.hosts[endOf(row)[0]]; }

function portText(row) {
  const [first, last] = [flows.first[row], flows.last[row]];
  if (!first) return "";
  return first === last ? String(first) : `${first}-${last}`;
}

/** A sentence with the names of this flow's ends in its holes. */
function fillHoles(number, row) {
  const names = { "\u0001": sourceOf(row).name, "\u0002": destinationOf(row).name, "\u0003": endOf(row)[1] };
  return data.sentences[number].replace(/[\u0001-\u0003]/g, (hole) => names[hole]);
}

/** The role that makes a requirement concern a host: as pair_map.py chooses it. */
function roleOf(host, wanted) {
  const roles = data.hosts[host].roles;
  return roles.find((role) => wanted.includes(role)) ?? roles[0] ?? ANY_ROLE;
}

/** The worst fates and counts of each pair of hosts between two roles; hosts in their order. */
function mapHosts(from, to) {
  const isSource = data.blocks.map((block) => markHosts(block.sources, block.from, from));
  const isEnd = data.blocks.map((block) => markHosts(block.ends.map((end) => end[0]), block.to, to));
  const pairs = new Map();
  const sources = new Set();
  const destinations = new Set();
  for (let row = 0; row < flows.count; row++) {
    const block = flows.block[row];
    const destination = data.blocks[block].ends[flows.end[row]][0];
    if (!isSource[block][flows.source[row]] || !isEnd[block][destination]) continue;
    const key = flows.source[row] * data.hosts.length + destination;
    let pair = pairs.get(key);
    if (!pair) {
      pair = { source: flows.source[row], destination, worst: PASS, flows: 0, counts: {} };
      pairs.set(key, pair);
      sources.add(pair.source);
      destinations.add(destination);
    }
    const { verdict, excuse } = classOf(row); // what is accepted, waived, optional or known decides nothing
    const word = excuse ?? verdict;
    pair.flows += countOf(row);
    pair.counts[word] = (pair.counts[word] ?? 0) + countOf(row);
    pair.worst = Math.min(pair.worst, FATES.indexOf(excuse ? "excused" : verdict));
  }
  const sorted = (numbers) => [...numbers].sort((left, right) => left - right);
  return {
    from, to, sources: sorted(sources), destinations: sorted(destinations),
    all: [...pairs.values()],
    at: (source, destination) => pairs.get(source * data.hosts.length + destination),
  };
}

function markHosts(hosts, wanted, role) {
  const marks = new Uint8Array(data.hosts.length);
  for (const host of hosts) marks[host] = roleOf(host, wanted) === role ? 1 : 0;
  return marks;
}
