// What all pages share: asking the server, and building the page from text that is never read as markup.

export class Refused extends Error {
  constructor(status, error, suggestions) {
    super(error);
    this.status = status;
    this.suggestions = suggestions;
  }
}

/** The JSON answer of an address; a refusal is thrown, with its line and its suggestions. */
export async function ask(path, parameters = {}, signal = undefined) {
  const query = new URLSearchParams(parameters).toString();
  const response = await fetch(query ? `${path}?${query}` : path, { signal });
  const found = await response.json();
  if (!response.ok) throw new Refused(response.status, found.error, found.suggestions ?? []);
  return found;
}

const SVG = "http://www.w3.org/2000/svg";

function filled(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** An HTML element; children are elements or texts, texts stay texts. */
export function element(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function shape(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

const LONGEST = 160; // letters of a label in the running text

/** A label among other text: neither turns the other round. A long one is shown in part, all of it under the pointer. */
export function labelled(label) {
  const shown = shortened(label, LONGEST);
  return element("bdi", { title: shown === label ? null : label }, ...breakable(shown));
}

/** As many letters of a label as there is room for, the last a sign that it goes on. */
export function shortened(label, most) {
  const letters = [...label]; // none of which is half of one
  return letters.length <= most ? label : `${letters.slice(0, Math.max(0, most - 1)).join("")}…`;
}

/** A text that breaks into lines after its signs, where a narrow column needs it. */
function breakable(text) {
  return text.split(/(?<=[_/.:#-])/u).flatMap((part, turn) => (turn ? [element("wbr"), part] : [part]));
}

export function byId(id) {
  return document.getElementById(id);
}

export function show(id, visible) {
  byId(id).hidden = !visible;
}

export function say(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

/** Tell of a trouble above the page, or that it is over. */
export function trouble(text) {
  say("trouble", text);
  show("trouble", Boolean(text));
}

const drawings = new Map();

/** A drawing of the server's; those that never change are asked for once. */
export async function drawing(address, kept = false) {
  if (kept && drawings.has(address)) return drawings.get(address).cloneNode(true);
  const response = await fetch(address);
  if (!response.ok) throw new Refused(response.status, "no drawing", []);
  const read = new DOMParser().parseFromString(await response.text(), "text/html");
  const found = document.importNode(read.querySelector("svg"), true);
  if (kept) drawings.set(address, found.cloneNode(true));
  return found;
}

export async function structureDrawing(rows) {
  return drawing(`/drawings/structure.svg?rows=${encodeURIComponent(JSON.stringify(rows))}`, true);
}

/** Links to pages that have nothing to show are left out. */
export function pagesOf(status) {
  show("to-live", Boolean(status.search));
  show("to-explore", Boolean(status.search) || Boolean(status.model));
}

export function duration(seconds) {
  const whole = Math.floor(seconds);
  const parts = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const shown = parts[0] ? parts : parts.slice(1);
  return shown.map((part, place) => (place ? String(part).padStart(2, "0") : part)).join(":");
}

export const mrr = (value) => (value === null || value === undefined ? "–" : value.toFixed(4));
export const percent = (share) => (share > 0 && share < 0.01 ? "<1 %" : share >= 0.995 ? ">99 %" : `${Math.round(100 * share)} %`);
export const whole = (count) => count.toLocaleString("en");
