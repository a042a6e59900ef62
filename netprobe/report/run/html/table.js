// The table of flows: what the search leaves, two hundred at a time.

const PAGE_ROWS = 200;
const search = document.getElementById("search");
const shown = { rows: new Uint32Array(0), size: 0, begin: 0 };

/** Make an element; texts are texts, never HTML. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(key, value);
    else if (value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function makeSign(verdict) {
  return make("span", { class: `sign ${verdict}`, "aria-hidden": "true" }, SIGNS[verdict]);
}

function wordCount(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** Search, and show the first page of what is found. */
function showFlows() {
  const { problem, test } = readQuery(search.value);
  if (shown.rows.length < flows.count) shown.rows = new Uint32Array(flows.count);
  shown.size = 0;
  shown.begin = 0;
  const failed = showRows((row) => classOf(row).verdict !== "pass" && test(row));
  const count = failed + showRows((row) => classOf(row).verdict === "pass" && test(row));
  const lines = count ? ` in ${wordCount(shown.size, "line")}` : "";
  const all = failed ? `; ${failed.toLocaleString("en")} did not pass` : "";
  document.getElementById("found").textContent = problem || `${wordCount(count, "flow")} found${lines}${all}`;
  search.setAttribute("aria-invalid", problem ? "true" : "false");
  for (const button of document.querySelectorAll("[data-query]")) {
    button.setAttribute("aria-pressed", String(button.dataset.query === search.value.trim()));
  }
  showPage(0);
}

/** Show these rows after those that are shown already; how many flows they are. */
function showRows(test) {
  let count = 0;
  for (let row = 0; row < flows.count; row++) {
    if (!test(row)) continue;
    shown.rows[shown.size++] = row;
    count += countOf(row);
  }
  return count;
}

function showPage(begin) {
  shown.begin = begin;
  const end = Math.min(begin + PAGE_ROWS, shown.size);
  const rows = Array.from(shown.rows.subarray(begin, end), makeRow);
  document.getElementById("rows").replaceChildren(...rows);
  document.getElementById("place").textContent =
    shown.size ? `Lines ${(begin + 1).toLocaleString("en")} to ${end.toLocaleString("en")} of ${shown.size.toLocaleString("en")}` : "Nothing matches.";
  document.getElementById("before").disabled = begin === 0;
  document.getElementById("after").disabled = end >= shown.size;
}

function makeRow(row) {
  const { verdict, reason, excuse } = classOf(row);
  const block = blockOf(row);
  const [destination, address] = [destinationOf(row).name, endOf(row)[1]];
  const opener = make("button",
    { type: "button", "aria-expanded": "false", class: "opener", click: () => toggleRow(opener, row) },
    makeSign(verdict), excuse ? `${verdict} (${excuse})` : verdict);
  return make("tr", {},
    make("td", {}, opener),
    make("td", { class: "wire" }, sourceOf(row).name),
    make("td", {}, ...nameParts(destination, address)),
    make("td", { class: "wire" }, `${block.protocol} ${portText(row)}`.trim()),
    make("td", { class: "wire" }, block.requirement),
    make("td", { class: "wire" }, reason));
}

/** A name and an address may stand on two lines; neither is broken at a hyphen. */
function nameParts(name, address) {
  const words = name === address ? [address] : [name, `(${address})`];
  return words.flatMap((word, place) => [place ? " " : "", make("span", { class: "wire" }, word)]);
}

/** A text whose names are on one line each, as elsewhere on the page. */
function keepNames(text) {
  const words = String(text).split(/([^\s,+]+[,+]*)/);
  return words.map((word) => (/\w-\w/.test(word) ? make("span", { class: "name" }, word) : word));
}

/** Show or hide the evidence of a flow below its line. */
function toggleRow(opener, row) {
  const open = opener.getAttribute("aria-expanded") === "true";
  opener.setAttribute("aria-expanded", String(!open));
  const line = opener.closest("tr");
  if (open) line.nextElementSibling.remove();
  else line.after(make("tr", { class: "evidence" }, make("td", { colspan: "6" }, makeEvidence(row))));
}

function makeEvidence(row) {
  const kind = classOf(row);
  const block = blockOf(row);
  const finding = kind.finding && make("a", { href: `#finding-${kind.finding}` }, `finding ${kind.finding}`);
  const facts = {
    seen: fillHoles(kind.because, row),
    state: `${kind.state}, ${kind.reason}${kind.proof === "none" ? "" : `; proof: ${kind.proof}`}`,
    where: kind.where?.replaceAll(" ", " or "),
    "refused by": kind.rejected_by,
    "last hop that answered": kind.last_hop,
    "next hop": kind.next_hop,
    holder: kind.holder,
    device: kind.device && (kind.driver ? `${kind.device} (driver ${kind.driver})` : kind.device),
    "path MTU": kind.path_mtu_bytes && `${kind.path_mtu_bytes} bytes`,
    warning: kind.warnings?.map((number) => fillHoles(number, row)).join("; "),
    "does not count": kind.excused,
    finding,
    purpose: `${block.purpose || block.requirement} (${block.matrix}, ${block.requirement}${block.row && block.row !== block.purpose ? `; row: ${block.row}` : ""})`,
    "required by": (block.also ?? []).map((one) => `${one.purpose || one.requirement} (${one.matrix}, ${one.requirement})`).join("; "),
    expected: block.expect === "denied" ? "no answer: it must not be open" : undefined,
  };
  const known = Object.entries(facts).filter(([, value]) => value);
  return make("dl", {}, ...known.flatMap(([key, value]) => [make("dt", {}, key), make("dd", {}, ...(value.nodeType ? [value] : keepNames(value)))]));
}

/** Up and down go from line to line. */
function moveInTable(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !event.target.classList.contains("opener")) return;
  const openers = [...document.querySelectorAll("#rows .opener")];
  const next = openers[openers.indexOf(event.target) + step];
  if (next) {
    event.preventDefault();
    next.focus();
  }
}

document.getElementById("rows").addEventListener("keydown", moveInTable);
document.getElementById("before").addEventListener("click", () => showPage(shown.begin - PAGE_ROWS));
document.getElementById("after").addEventListener("click", () => showPage(shown.begin + PAGE_ROWS));
