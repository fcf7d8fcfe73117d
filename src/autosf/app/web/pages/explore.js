// The explorer: a question as one composes it, its answers, the entity's neighbourhood, and single triples.
import { ask, byId, element, labelled, pagesOf, percent, say, shape, shortened, show, trouble, whole } from "/assets/common.js";
import { combobox } from "/assets/combobox.js";
import { picture } from "/assets/picture.js";

const FIRST = 10;
const MOST = 100;
const SHOWN = 5; // entities of a fact
const IN_TITLE = 60; // letters of the entity
const FACTS = 7; // relations, before one asks for all
const state = { entity: "", relation: "", side: "tail", top: FIRST };
let turn = 0; // of the last question: late answers to earlier ones are not shown

const entity = combobox(byId("entity-field"), "entity", "entity", (label) => go({ entity: label }));
const relation = combobox(byId("relation-field"), "relation", "relation", (label) => go({ relation: label }));
const checked = {
  head: combobox(byId("check-head-field"), "check-head", "entity", () => {}),
  relation: combobox(byId("check-relation-field"), "check-relation", "relation", () => {}),
  tail: combobox(byId("check-tail-field"), "check-tail", "entity", () => {}),
};

/** The address that shows an entity, or a whole question: it can be kept, sent and gone back to. */
function address(wanted) {
  const query = new URLSearchParams();
  for (const name of ["entity", "relation", "side"]) {
    if (wanted[name] && !(name === "side" && wanted.side === "tail")) query.set(name, wanted[name]);
  }
  return `/explore?${query}`;
}

function link(label) {
  const wanted = { entity: label };
  return { href: address(wanted), go: followed({ entity: label, relation: "", side: "tail" }) };
}

/** A click that stays on this page; with a key held it opens another, as links do. */
function followed(wanted) {
  return (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    go(wanted);
    byId("name").scrollIntoView({ block: "start" });
  };
}

/** Show what is wanted; of the rest, what the fields hold. */
function go(wanted) {
  Object.assign(state, { entity: entity.value, relation: relation.value, top: FIRST }, wanted);
  if (address(state) !== location.pathname + location.search) history.pushState(null, "", address(state));
  return showAll();
}

async function showAll() {
  entity.value = state.entity;
  relation.value = state.relation;
  document.querySelector(`input[name="side"][value="${state.side}"]`).checked = true;
  document.title = `${shortened(state.entity, IN_TITLE) || "Explorer"} · AutoSF`;
  const mine = ++turn;
  trouble("");
  await Promise.all([showAnswers(mine), showAround(mine)]);
}

async function showAnswers(mine) {
  const ready = state.entity && state.relation;
  if (!ready) {
    show("answers-table", false);
    show("more", false);
    say("question", state.entity ? "Choose a relation, or one of its facts." : "Choose an entity and a relation.");
    return;
  }
  const given = state.side === "tail" ? "head" : "tail";
  const known = byId("hide").checked ? "hide" : "mark";
  try {
    const question = { [given]: state.entity, relation: state.relation, top: state.top, known };
    const found = await ask("/api/predict", question);
    if (mine !== turn) return;
    const [head, tail] = state.side === "tail" ? [state.entity, "?"] : ["?", state.entity];
    byId("question").replaceChildren(labelled(head), "  ", labelled(state.relation), "  ", labelled(tail));
    byId("answers").replaceChildren(...found.predictions.map((row, place) => answer(row, place + 1)));
    show("answers-table", found.predictions.length > 0);
    show("more", found.predictions.length === state.top && state.top < MOST);
    if (!found.predictions.length) say("question", "No answer: all are known already.");
    fillCheck(found.predictions);
  } catch (error) {
    if (mine !== turn) return;
    for (const part of ["answers-table", "more"]) show(part, false);
    say("question", "");
    refused(error);
  }
}

function answer(row, place) {
  const next = link(row.entity);
  return element(
    "tr",
    { class: row.known ? "known" : "" },
    element("td", { class: "number muted" }, String(place)),
    element(
      "td",
      {},
      element("a", { href: next.href, click: next.go }, labelled(row.entity)),
      row.known ? element("span", { class: "badge" }, "known") : null,
    ),
    element("td", {}, row.probability === null ? "–" : bar(row.probability)),
    element("td", { class: "number muted score" }, row.score === null ? "–" : row.score.toFixed(3)),
  );
}

function bar(share) {
  return element(
    "span",
    { class: "share" },
    shape(
      "svg",
      { viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" },
      shape("rect", { class: "whole", width: 100, height: 8, rx: 2 }),
      shape("rect", { class: "part", width: Math.max(1, 100 * share), height: 8, rx: 2 }),
    ),
    element("span", { class: "share-text" }, percent(share)),
  );
}

async function showAround(mine) {
  if (!state.entity) return show("around", false);
  try {
    const found = await ask("/api/neighbours", { entity: state.entity, limit: 8 });
    if (mine !== turn) return;
    show("around", true);
    const room = byId("picture").clientWidth;
    byId("picture").replaceChildren(...(found.facts.length ? [picture(found.entity, found.facts, room, link)] : []));
    byId("facts").replaceChildren(...found.facts.map(fact));
    showFacts(found.facts.length <= FACTS + 1);
    byId("similar").replaceChildren(...found.similar.map((row) => chip(row.entity)));
  } catch (error) {
    if (mine !== turn) return;
    show("around", false);
    refused(error);
  }
}

/** All relations of the entity, or the busiest. */
function showFacts(all) {
  [...byId("facts").children].forEach((item, turn) => (item.hidden = !all && turn >= FACTS));
  say("more-facts", `Show all ${byId("facts").children.length} relations`);
  show("more-facts", !all);
}

/** A relation of the entity, as a question, with some of what the graph has for it. */
function fact(side) {
  const wanted = { entity: state.entity, relation: side.relation, side: side.direction === "out" ? "tail" : "head" };
  const arrow = side.direction === "out" ? "→ " : "← ";
  const asked = element("a", { href: address(wanted), click: followed(wanted), class: "asked" }, arrow, labelled(side.relation));
  const shown = side.entities.slice(0, SHOWN).flatMap((label, place) => {
    const next = link(label);
    return [place ? ", " : " ", element("a", { href: next.href, click: next.go, class: "plain-link" }, labelled(label))];
  });
  const rest = side.count - Math.min(SHOWN, side.entities.length);
  return element("li", {}, asked, ...shown, rest > 0 ? ` and ${whole(rest)} more` : null);
}

function chip(label) {
  const next = link(label);
  return element("li", {}, element("a", { href: next.href, click: next.go }, labelled(label)));
}

function refused(error) {
  if (!error.status) return trouble("The server does not answer.");
  trouble(error.message);
  if (!error.suggestions.length) return;
  const role = error.message.startsWith("relation") ? "relation" : "entity";
  const offers = error.suggestions.flatMap((label, place) => {
    const wanted = { ...state, [role]: label };
    return [place ? ", " : "; did you mean ", element("a", { href: address(wanted), click: followed(wanted) }, labelled(label))];
  });
  byId("trouble").append(...offers, "?");
}

/** The first new answer is what one may want to check next. */
function fillCheck(predictions) {
  const first = predictions.find((row) => !row.known) ?? predictions[0];
  if (!first) return;
  const [head, tail] = state.side === "tail" ? [state.entity, first.entity] : [first.entity, state.entity];
  checked.head.value = head;
  checked.relation.value = state.relation;
  checked.tail.value = tail;
  say("verdict", "");
}

async function check(event) {
  event.preventDefault();
  const triple = { head: checked.head.value, relation: checked.relation.value, tail: checked.tail.value };
  try {
    showVerdict(await ask("/api/classify", triple));
  } catch (error) {
    const near = (error.suggestions ?? []).flatMap((label, place) => [place ? " or “" : "; did you mean “", labelled(label), "”"]);
    byId("verdict").replaceChildren(element("span", { class: "bad" }, error.message, ...near, near.length ? "?" : ""));
  }
}

function showVerdict(found) {
  const lines = [];
  if (found.probability !== null) {
    const word = found.likely ? "Likely" : "Unlikely";
    lines.push(element("strong", { class: found.likely ? "good" : "bad" }, `${word}, ${percent(found.probability)}. `));
  } else {
    lines.push(`Score ${found.score === null ? "–" : found.score.toFixed(3)}. `);
  }
  if (found.known) lines.push("The graph has this fact already. ");
  if (found.tail_rank !== null) {
    lines.push(`Among all other tails it takes place ${place(found.tail_rank)}, among all other heads place ${place(found.head_rank)}.`);
  }
  byId("verdict").replaceChildren(...lines);
}

const place = (rank) => whole(Math.round(rank));

function fromAddress() {
  const query = new URLSearchParams(location.search);
  state.entity = query.get("entity") ?? "";
  state.relation = query.get("relation") ?? "";
  state.side = query.get("side") === "head" ? "head" : "tail";
  state.top = FIRST;
  return showAll();
}

async function begin() {
  try {
    const status = await ask("/api/status");
    pagesOf(status);
    say("name", status.model ? status.model.graph : status.name);
    if (!status.model) {
      const waiting = { none: "The model comes when the search has ended; this page will show it.", loading: "The model is being loaded …" };
      trouble(waiting[status.model_state] ?? "The model could not be loaded; the server’s log says why.");
      setTimeout(begin, 2000);
      return;
    }
    const model = status.model;
    const named = model.names.length ? `, ${model.names[0]}` : "";
    say("about", `${whole(model.entities)} entities, ${whole(model.relations)} relations${named}, dimension ${whole(model.dimension)}`);
    byId("hide").disabled = !model.knows_triples;
    show("calibrated", model.has_probabilities);
    await fromAddress();
  } catch (error) {
    refused(error);
  }
}

byId("ask").addEventListener("submit", (event) => event.preventDefault());
byId("ask").addEventListener("change", (event) => {
  if (event.target.name === "side") go({ side: event.target.value });
  if (event.target.name === "hide") go({ top: state.top });
});
byId("more").addEventListener("click", () => {
  go({ top: Math.min(MOST, state.top * 3) });
});
byId("more-facts").addEventListener("click", () => showFacts(true));
byId("check").addEventListener("submit", check);
addEventListener("popstate", fromAddress);
begin();
