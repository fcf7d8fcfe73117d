// The neighbourhood as a small drawing: what leads to the entity on the left, what it leads to on the right.
import { shape, shortened } from "/assets/common.js";

const MOST = 6; // on a side
const ROW = 50; // from one neighbour to the next
const BOX = 42; // a neighbour's height
const SIDES = 9; // between a box and its text
const NAME = "13px"; // the looks of texts, as in web.css
const RELATION = "11.5px";
const CENTRE = "600 13px";
const NARROWEST = 330;
const WIDEST = 560;

/** Neighbours to draw on one side: one of each relation in turn, so that no busy one fills it. */
export function spread(sides, most = MOST) {
  const found = [];
  const longest = Math.max(0, ...sides.map((side) => side.entities.length));
  for (let turn = 0; turn < longest; turn++) {
    for (const side of sides) {
      if (found.length < most && turn < side.entities.length) found.push({ relation: side.relation, entity: side.entities[turn] });
    }
  }
  return found;
}

/** The drawing, as wide as there is room; `link(label)` says where a click on a neighbour leads. */
export function picture(entity, facts, room, link) {
  const left = spread(facts.filter((side) => side.direction === "in"));
  const right = spread(facts.filter((side) => side.direction === "out"));
  const width = Math.min(WIDEST, Math.max(NARROWEST, room));
  const gap = width / 13;
  const [middle, box] = [width * 0.24, (width - width * 0.24 - 2 * gap) / 2];
  const height = ROW * Math.max(left.length, right.length, 1);
  const centre = { x: (width - middle) / 2, y: height / 2, width: middle };
  const columns = [
    [left, 0, (y) => arrow({ x: box, y }, { x: centre.x - 2, y: centre.y })],
    [right, width - box, (y) => arrow({ x: centre.x + middle, y: centre.y }, { x: width - box - 2, y })],
  ];
  const drawn = columns.flatMap(([some, x, line]) => {
    const top = (height - ROW * some.length) / 2;
    return some.flatMap((fact, turn) => {
      const y = top + ROW * (turn + 0.5);
      return [line(y), neighbour(fact, { x, y, width: box }, link(fact.entity))];
    });
  });
  const told = { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "Some facts of the graph" };
  return shape("svg", { class: "picture", ...told }, arrowhead(), ...drawn, named(entity, centre));
}

function arrowhead() {
  const size = { viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" };
  return shape("defs", {}, shape("marker", { id: "arrow", ...size }, shape("path", { d: "M0 0L8 4L0 8z", class: "arrow" })));
}

function arrow(from, to) {
  const half = (to.x - from.x) / 2;
  const bend = `M${from.x} ${from.y}C${from.x + half} ${from.y} ${to.x - half} ${to.y} ${to.x} ${to.y}`;
  return shape("path", { class: "edge", d: bend, "marker-end": "url(#arrow)" });
}

function neighbour(fact, place, address) {
  const room = place.width - 2 * SIDES;
  return shape(
    "a",
    { href: address.href, click: address.go, "aria-label": `${fact.relation}: ${fact.entity}` },
    shape("title", {}, `${fact.relation}: ${fact.entity}`),
    shape("rect", { x: place.x + 1, y: place.y - BOX / 2, width: place.width - 2, height: BOX, rx: 6 }),
    shape("text", { x: place.x + SIDES, y: place.y - 4, class: "relation" }, fitted(fact.relation, room, RELATION)),
    shape("text", { x: place.x + SIDES, y: place.y + 13 }, fitted(fact.entity, room, NAME)),
  );
}

function named(entity, place) {
  return shape(
    "g",
    { class: "centre" },
    shape("title", {}, entity),
    shape("rect", { x: place.x, y: place.y - 17, width: place.width, height: 34, rx: 6 }),
    shape("text", { x: place.x + place.width / 2, y: place.y + 4 }, fitted(entity, place.width - 2 * SIDES, CENTRE)),
  );
}

const pen = document.createElement("canvas").getContext("2d");

/** As much of a label as the room holds in a font of the page; some letters are several times as wide as others. */
function fitted(label, room, font) {
  pen.font = `${font} ${getComputedStyle(document.body).fontFamily}`;
  let shown = shortened(label, Math.floor(room));
  for (let most = [...shown].length - 1; most > 0 && pen.measureText(shown).width > room; most--) shown = shortened(shown, most);
  return shown;
}
