// The search: words and KEY:VALUE, all of which must hold; `-` before one turns it round.

/** What each key looks at: values of a host, a class, a block or a row. */
const HOST_KEYS = { from: true, to: true, host: true };
const CLASS_KEYS = {
  verdict: (one) => [one.verdict],
  state: (one) => [one.state],
  reason: (one) => [one.reason],
  proof: (one) => [one.proof],
  where: (one) => (one.where ?? "").split(" "),
  finding: (one) => [String(one.finding ?? "")],
  by: (one) => [one.rejected_by ?? "", one.last_hop ?? ""],
};
const BLOCK_KEYS = {
  req: (block) => rowsOf(block).map((one) => one.requirement),
  matrix: (block) => rowsOf(block).map((one) => one.matrix),
  protocol: (block) => [block.protocol, block.protocol.split("/")[0]],
};
const SHORT = { proto: "protocol", requirement: "req", source: "from", destination: "to", role: "host" };
const IS = {
  optional: (row) => blockOf(row).optional,
  waived: (row) => classOf(row).excuse === "waived",
  accepted: (row) => classOf(row).excuse === "accepted",
  known: (row) => classOf(row).excuse === "known",
  spared: (row) => classOf(row).excuse === "spared",
  warned: (row) => Boolean(classOf(row).warnings),
};
const KEYS = [...Object.keys(HOST_KEYS), "port", ...Object.keys(CLASS_KEYS), ...Object.keys(BLOCK_KEYS), "is"];

/** Read a query: its test of a row, and what is wrong with it in a sentence, or "". */
function readQuery(query) {
  const tests = [];
  let problem = "";
  for (const [, not, key, quoted, plain, phrase, word] of query.matchAll(/(-?)(?:([a-z]+):(?:"([^"]*)"?|(\S*))|"([^"]*)"?|(\S+))/gi)) {
    const made = makeTest(key?.toLowerCase(), quoted ?? plain ?? phrase ?? word);
    if (typeof made === "string") problem ||= made;
    else tests.push(not ? (row) => !made(row) : made);
  }
  return { problem, test: (row) => tests.every((test) => test(row)) };
}

function makeTest(given, text) {
  const key = SHORT[given] ?? given;
  const wanted = text.toLowerCase();
  if (key && !/[^,]/.test(wanted)) return `${given}: says nothing to search for, as ${given}:VALUE does`;
  if (!key) return testWord(wanted);
  const matches = matchAny(wanted);
  if (key in HOST_KEYS) return testHost(key, matches);
  if (key in CLASS_KEYS) return testTable(data.classes, CLASS_KEYS[key], matches, flows.kind);
  if (key in BLOCK_KEYS) return testTable(data.blocks, BLOCK_KEYS[key], matches, flows.block);
  if (key === "port") return testPort(wanted);
  if (key === "is") return IS[wanted] ?? `is:${text} is none of ${Object.keys(IS).join(", ")}`;
  return `there is no ${given}: to search by; there is ${KEYS.join(", ")}`;
}

/** The pattern of a text in which `*` stands for anything. */
function writePattern(text) {
  return text.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replace(/\*/g, ".*");
}

/** Whole names, several with commas. */
function matchAny(wanted) {
  const pattern = new RegExp(`^(?:${wanted.split(",").filter(Boolean).map(writePattern).join("|")})$`, "i");
  return (values) => values.some((value) => pattern.test(value));
}

/** Test by a table: what is looked at once for each thing, not for each row. */
function testTable(things, values, matches, column) {
  const marks = Uint8Array.from(things, (one) => (matches(values(one)) ? 1 : 0));
  return (row) => marks[column[row]] === 1;
}

function testHost(key, matches) {
  const marks = data.hosts.map((host) => matches([host.name, host.zone, ...host.roles]));
  const ends = data.blocks.map((block) => block.ends.map((end) => marks[end[0]] || matches([end[1]])));
  const from = (row) => marks[flows.source[row]];
  const to = (row) => ends[flows.block[row]][flows.end[row]];
  if (key === "from") return from;
  return key === "to" ? to : (row) => from(row) || to(row);
}

/** Any port of the range; 7000-7010 is whatever overlaps it. */
function testPort(wanted) {
  const ranges = [];
  for (const one of wanted.split(",").filter(Boolean)) {
    const found = /^(\d+)(?:-(\d+))?$/.exec(one);
    if (!found) return `port:${wanted} is no port, such as 6443, or range, such as 7000-7999`;
    ranges.push([Number(found[1]), Number(found[2] ?? found[1])]);
  }
  return (row) => flows.first[row] > 0 &&
    ranges.some(([first, last]) => flows.first[row] <= last && flows.last[row] >= first);
}

/** A bare word, anywhere in what is known of a flow. */
function testWord(word) {
  const [anywhere, whole] = [new RegExp(writePattern(word), "i"), new RegExp(`^${writePattern(word)}$`, "i")];
  const has = (texts) => texts.some((text) => text && anywhere.test(text));
  const hosts = data.hosts.map((host) => has([host.name, host.zone]));
  const blocks = data.blocks.map((one) =>
    has([one.protocol, one.row, ...rowsOf(one).flatMap((row) => [row.matrix, row.requirement, row.purpose])]));
  const ends = data.blocks.map((block) => block.ends.map((end) => hosts[end[0]] || has([end[1]])));
  const classes = data.classes.map((one) =>
    has([...Object.values(one).filter((value) => typeof value === "string"), data.sentences[one.because]]));
  return (row) => classes[flows.kind[row]] || blocks[flows.block[row]] ||
    hosts[flows.source[row]] || ends[flows.block[row]][flows.end[row]] ||
    (flows.first[row] > 0 && whole.test(portText(row)));
}
