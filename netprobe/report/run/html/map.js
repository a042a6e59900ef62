// From a cell of the table of roles to the map of its hosts, and from there to the flows.

const TABLE_HOSTS = 40; // above that a table is slow and unreadable: a picture with a list
const LIST_PAIRS = 500;
const ZONE_EDGE = 20;
const mapSection = document.getElementById("map");
let shownMap = null;

/** Make every cell of the table of roles a button that opens its map. */
function prepareRoles() {
  for (const cell of document.querySelectorAll("#roles td[data-from]")) {
    const { from, to } = cell.dataset;
    const button = make("button", { type: "button", click: () => goToMap(from, to) });
    button.append(...cell.childNodes);
    cell.append(button);
  }
  makeGrid(document.querySelector("#roles table"));
}

/** One stop of the Tab key for all buttons of a table; arrows go from one to the next. */
function makeGrid(table) {
  const buttons = [...(table?.querySelectorAll("td button") ?? [])];
  buttons.forEach((button, number) => button.setAttribute("tabindex", number ? "-1" : "0"));
  table?.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const cell = event.target.closest("td");
    const next = step && cell && findNext(cell, step);
    if (!next) return;
    event.preventDefault();
    for (const button of buttons) button.setAttribute("tabindex", "-1");
    next.setAttribute("tabindex", "0");
    next.focus();
  });
}

/** The next cell in this direction that is a button. */
function findNext(cell, [down, right]) {
  const body = cell.closest("tbody");
  let [row, column] = [cell.parentElement.sectionRowIndex + down, cell.cellIndex + right];
  while (body.rows[row]?.cells[column]) {
    const button = body.rows[row].cells[column].querySelector("button");
    if (button) return button;
    row += down;
    column += right;
  }
  return null;
}

function showMap(from, to) {
  const map = mapHosts(from, to);
  shownMap = map.all.length ? map : null;
  mapSection.hidden = !shownMap;
  if (!shownMap) return;
  const failed = map.all.filter((pair) => pair.worst < PASS);
  document.getElementById("map-title").textContent = `${from} \u2192 ${to}, host by host`;
  document.getElementById("map-words").textContent = failed.length
    ? `${wordCount(failed.length, "pair")} of ${map.all.length.toLocaleString("en")} did not all pass. Sources are lines, destinations columns; Enter or a click shows the flows of a pair.`
    : `All of ${wordCount(map.all.length, "pair")} pass.`;
  document.getElementById("map-place").textContent = "";
  const small = map.sources.length <= TABLE_HOSTS && map.destinations.length <= TABLE_HOSTS;
  document.getElementById("map-body").replaceChildren(small ? makeHostTable(map) : makePicture(map));
  document.getElementById("map-list").replaceChildren(...makeList(failed));
  document.getElementById("map-list").hidden = !failed.length;
}

function wordPair(pair) {
  const names = `${data.hosts[pair.source].name} \u2192 ${data.hosts[pair.destination].name}`;
  const parts = FAILED.filter((word) => pair.counts[word])
    .map((word) => `${pair.counts[word].toLocaleString("en")} ${word}`);
  return `${names}: ${parts.join(", ") || "all pass"}, of ${wordCount(pair.flows, "flow")}`;
}

function openPair(pair) {
  const quote = (host) => { // what has a meaning in a search is left open
    const name = data.hosts[host].name.replace(/[",]/g, "*");
    return /\s/.test(name) ? `"${name}"` : name;
  };
  goToFlows(`from:${quote(pair.source)} to:${quote(pair.destination)}`);
}

function makeHostTable(map) {
  const heads = map.destinations.map((host) =>
    make("th", { scope: "col" }, make("span", {}, data.hosts[host].name)));
  const lines = map.sources.map((source) => make("tr", {},
    make("th", { scope: "row" }, data.hosts[source].name),
    ...map.destinations.map((destination) => makeHostCell(map.at(source, destination)))));
  const table = make("table", { class: "hosts" },
    make("thead", {}, make("tr", {}, make("td", {}), ...heads)), make("tbody", {}, ...lines));
  makeGrid(table);
  return make("div", { class: "wide", role: "region", "aria-label": "Host by host", tabindex: "0" }, table);
}

function makeHostCell(pair) {
  if (!pair) return make("td", {});
  const fate = FATES[pair.worst];
  const words = wordPair(pair);
  const tell = () => { document.getElementById("map-place").textContent = words; };
  return make("td", { class: `cell ${fate}` },
    make("button", { type: "button", "aria-label": words, title: words, focus: tell, click: () => openPair(pair) },
      SIGNS[fate]));
}

/** A picture of many hosts, a square a pair; arrows move a frame over it. */
function makePicture(map) {
  const [rows, columns] = [map.sources.length, map.destinations.length];
  const size = Math.max(4, Math.min(14, Math.floor(900 / Math.max(rows, columns))));
  const edge = data.hosts.some((host) => host.zone) ? ZONE_EDGE : 0;
  const canvas = make("canvas", {
    width: columns * size + edge, height: rows * size + edge, tabindex: "0", role: "application",
    "aria-roledescription": "map", "aria-describedby": "map-place",
    "aria-label": "Host by host: arrow keys move, Enter shows the flows of a pair",
  });
  const at = { row: 0, column: 0 };
  const draw = () => drawPicture(canvas, map, size, edge, at);
  const move = (row, column) => {
    at.row = Math.max(0, Math.min(rows - 1, row));
    at.column = Math.max(0, Math.min(columns - 1, column));
    const pair = map.at(map.sources[at.row], map.destinations[at.column]);
    const names = `${data.hosts[map.sources[at.row]].name} \u2192 ${data.hosts[map.destinations[at.column]].name}`;
    document.getElementById("map-place").textContent = pair ? wordPair(pair) : `${names}: nothing is required`;
    draw();
    return pair;
  };
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    if (step) move(at.row + step[0], at.column + step[1]);
    else if (event.key === "Enter") {
      const pair = move(at.row, at.column);
      if (pair) openPair(pair);
    } else return;
    event.preventDefault();
  });
  const point = (event) => move(Math.floor((event.offsetY - edge) / size), Math.floor((event.offsetX - edge) / size));
  canvas.addEventListener("mousemove", point);
  canvas.addEventListener("click", (event) => {
    const pair = point(event);
    if (pair) openPair(pair);
  });
  canvas.addEventListener("focus", () => move(at.row, at.column));
  canvas.addEventListener("blur", draw);
  canvas.redraw = draw;
  draw();
  return make("div", { class: "wide", role: "region", "aria-label": "Host by host" }, canvas);
}

function drawPicture(canvas, map, size, edge, at) {
  const style = getComputedStyle(document.documentElement);
  const colours = FATES.map((fate) => style.getPropertyValue(`--${fate}`));
  const inks = FATES.map((fate) => style.getPropertyValue(`--${fate}-ink`));
  const context = canvas.getContext("2d");
  const gap = size > 6 ? 1 : 0;
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.translate(edge, edge);
  context.font = `${size - 3}px sans-serif`;
  context.textAlign = "center";
  context.textBaseline = "middle";
  const rowOf = new Map(map.sources.map((host, row) => [host, row]));
  const columnOf = new Map(map.destinations.map((host, column) => [host, column]));
  for (const pair of map.all) {
    const [x, y] = [columnOf.get(pair.destination) * size, rowOf.get(pair.source) * size];
    context.fillStyle = colours[pair.worst];
    context.fillRect(x, y, size - gap, size - gap);
    if (["exposed", "excused"].includes(FATES[pair.worst])) { // as dark or as light as a page
      context.strokeStyle = style.getPropertyValue("--edge");
      context.strokeRect(x + .5, y + .5, size - gap - 1, size - gap - 1);
    }
    if (size >= 10 && pair.worst < PASS) {
      context.fillStyle = inks[pair.worst];
      context.fillText(SIGNS[FATES[pair.worst]], x + size / 2, y + size / 2);
    }
  }
  if (edge) {
    drawZones(context, style, map.destinations, size, map.sources.length * size);
    context.transform(0, 1, 1, 0, 0, 0);
    drawZones(context, style, map.sources, size, map.destinations.length * size, true);
    context.setTransform(1, 0, 0, 1, edge, edge);
  }
  if (document.activeElement === canvas) {
    context.strokeStyle = style.getPropertyValue("--ink");
    context.lineWidth = 2;
    context.strokeRect(at.column * size - 1, at.row * size - 1, size + 2, size + 2);
  }
}

/** Name the zones along the upper edge, and draw a line between two. */
function drawZones(context, style, hosts, size, length, mirrored = false) {
  context.font = "12px sans-serif";
  let begin = 0;
  hosts.forEach((host, number) => {
    const zone = data.hosts[host].zone;
    if (number + 1 < hosts.length && data.hosts[hosts[number + 1]].zone === zone) return;
    const end = number + 1;
    context.fillStyle = style.getPropertyValue("--ink");
    context.save();
    context.translate((begin + end) * size / 2, -ZONE_EDGE / 2);
    if (mirrored) context.transform(-1, 0, 0, 1, 0, 0);
    context.fillText(zone && `zone ${zone}`, 0, 0, (end - begin) * size);
    context.restore();
    context.fillStyle = style.getPropertyValue("--paper");
    if (end < hosts.length) context.fillRect(end * size - 1, -ZONE_EDGE, 2, length + ZONE_EDGE);
    begin = end;
  });
}

/** The same as a list: for readers of screens, and for copying. */
function makeList(failed) {
  const lines = failed.slice(0, LIST_PAIRS).map((pair) => make("li", {},
    makeSign(FATES[pair.worst]),
    make("button", { type: "button", class: "link", click: () => openPair(pair) }, wordPair(pair))));
  const more = failed.length - LIST_PAIRS;
  if (more > 0) lines.push(make("li", {}, `and ${more.toLocaleString("en")} more: search the flows below`));
  return [make("summary", {}, `As a list: ${wordCount(failed.length, "pair")} that did not all pass`),
    make("ul", {}, ...lines)];
}
