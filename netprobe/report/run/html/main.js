// Puts the parts together. What is shown is kept in the address, so that a link shows it again.

/** The address of a view: words stay readable, `#q=verdict:blocked+from:worker-1`. */
function writeAddress() {
  const encode = (text) => encodeURIComponent(text).replace(/%20/g, "+").replace(/%3A/g, ":").replace(/%2C/g, ",");
  const parts = [];
  if (search.value.trim()) parts.push(`q=${encode(search.value.trim())}`);
  if (shownMap) parts.push(`from=${encode(shownMap.from)}`, `to=${encode(shownMap.to)}`);
  history.replaceState(null, "", `#${parts.join("&")}`);
}

/** Show what the address says; any other fragment is a place of the page, which the browser finds. */
function readAddress() {
  const known = new URLSearchParams(location.hash.slice(1));
  if (location.hash.length > 1 && !known.has("q") && !known.has("from")) {
    openFinding(location.hash.slice(1));
    return;
  }
  search.value = known.get("q") ?? "";
  showFlows();
  showMap(known.get("from") ?? "", known.get("to") ?? "");
}

/** Open a finding whose text is folded away, so that a link to it shows it. */
function openFinding(id) {
  const folded = document.getElementById(id)?.closest("details");
  if (folded) folded.open = true;
}

function goTo(id) {
  document.getElementById(id).scrollIntoView();
}

function goToFlows(query) {
  search.value = query;
  showFlows();
  writeAddress();
  goTo("flows");
  search.focus({ preventScroll: true });
}

function goToMap(from, to) {
  showMap(from, to);
  writeAddress();
  goTo("map");
  mapSection.querySelector("#map-body button, #map-body canvas")?.focus({ preventScroll: true });
}

/** Back from a map to its cell of the table of roles. */
function leaveMap() {
  const { from, to } = shownMap;
  mapSection.hidden = true;
  shownMap = null;
  writeAddress();
  const cells = [...document.querySelectorAll("#roles td[data-from]")];
  cells.find((cell) => cell.dataset.from === from && cell.dataset.to === to)?.querySelector("button").focus();
}

/** Each finding gets buttons: its flows, and its text for a ticket. */
function prepareFindings() {
  for (const finding of document.querySelectorAll("article[data-finding]")) {
    const copy = make("button", { type: "button", click: () => copyText(finding, copy) }, "Copy");
    finding.querySelector(".actions").append(
      make("button", { type: "button", click: () => goToFlows(`finding:${finding.dataset.finding}`) }, "Show the flows"),
      copy);
  }
}

/** Copy a finding; a page from a file may have no clipboard of its own, then by selecting. */
async function copyText(finding, button) {
  const lines = [finding.querySelector("h3").textContent];
  for (const field of finding.querySelectorAll("dt")) {
    for (let line = field.nextElementSibling; line?.tagName === "DD"; line = line.nextElementSibling) {
      lines.push(`${field.textContent}: ${line.textContent}`);
    }
  }
  const area = make("textarea", { class: "copying", "aria-label": "Text to copy" });
  area.value = lines.join("\n");
  finding.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  button.textContent = done ? "Copied" : "Could not copy";
  button.focus();
  setTimeout(() => { button.textContent = "Copy"; }, 2000);
}

let waiting = 0;
search.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { showFlows(); writeAddress(); }, 120);
});
for (const button of document.querySelectorAll("[data-query]")) {
  button.addEventListener("click", () => goToFlows(button.dataset.query));
}
document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    goTo("flows");
    search.focus({ preventScroll: true });
    search.select();
  } else if (event.key === "Escape" && shownMap && mapSection.contains(event.target)) leaveMap();
});
document.getElementById("map-close").addEventListener("click", leaveMap);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.querySelector("canvas")?.redraw());
addEventListener("hashchange", readAddress);

for (const hidden of document.querySelectorAll("[data-script]")) hidden.hidden = false;
prepareRoles();
prepareFindings();
readAddress();
if (!shown.rows.length) showFlows();
document.documentElement.dataset.ready = "yes";
