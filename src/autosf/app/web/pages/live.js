// The live view: asks for the state every second, and for the rest when its version is another.
import { ask, byId, drawing, duration, element, mrr, pagesOf, say, show, structureDrawing, trouble, whole } from "/assets/common.js";

const POLL = 1000; // milliseconds
const SLOWEST = 10000; // between two tries while the server is away
const FIRST_ROWS = 20;
const MOST_ROWS = 200; // that the server gives
const STATES = {
  running: "running",
  stopped: "stopped",
  playoff: "play-off, trained in full",
  training: "training the winner",
  ended: "ended",
};
const OUT_OF_TIME = "the time is used up"; // an ending, as the server words it
let rows = FIRST_ROWS;
let version = "";
let wait = POLL;
const places = new Map(); // of structures, when the leaderboard was last drawn

async function look() {
  try {
    const status = await ask("/api/status");
    wait = POLL;
    trouble("");
    await showStatus(status);
  } catch (error) {
    wait = Math.min(SLOWEST, wait * 2);
    trouble(error.status ? error.message : "The server does not answer; trying again …");
    byId("state").dataset.state = "away";
    say("state", "not connected");
  }
  setTimeout(look, document.hidden ? Math.max(wait, 5 * POLL) : wait);
}

async function showStatus(status) {
  pagesOf(status);
  const search = status.search;
  if (!search) return location.replace("/explore");
  document.title = `${status.name}: ${STATES[search.state]} · AutoSF`;
  say("name", status.name);
  byId("state").dataset.state = search.state;
  say("state", search.state === "ended" && search.ending ? `ended: ${search.ending}` : STATES[search.state]);
  showFigures(search);
  await showRunning(search);
  show("best-explore", status.model_state === "ready");
  if (search.version !== version) {
    await showResults(search.strategy);
    version = search.version;
  }
}

function showFigures(search) {
  const failed = search.failed ? `${whole(search.failed)} failed` : `strategy ${search.strategy}`;
  const figures = [
    ["Best structure’s MRR", mrr(search.best_mrr), ""],
    ["Structures tried", whole(search.structures), ""],
    ["Trials done", whole(search.trials), failed],
    ["Time spent", duration(search.seconds), ""],
  ];
  const told = figures.map((figure) => figure.join()).join();
  if (byId("figures").dataset.told === told) return;
  byId("figures").dataset.told = told;
  byId("figures").replaceChildren(
    ...figures.map(([name, value, note]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value, note ? element("small", {}, note) : null)),
    ),
  );
}

async function showRunning(search) {
  const cards = await Promise.all(search.running.map((trial) => card(trial, search.state)));
  byId("running").replaceChildren(...cards);
  const idle = {
    running: "The search is choosing what to train next.",
    stopped: "Nobody is at work. `autosf resume` goes on with this search; this page will show it.",
  };
  show("now", search.state !== "ended");
  say("idle", cards.length ? "" : (idle[search.state] ?? ""));
  show("idle", !cards.length);
}

async function card(trial, state) {
  const name = trial.names[0] ?? "a new structure";
  const last = state === "playoff" ? "play-off" : "the winner’s model";
  const who = trial.worker === null ? last : `worker ${trial.worker}, seed ${trial.seed}`;
  const told = `epoch ${trial.epoch} of ${trial.epochs}`;
  return element(
    "li",
    { class: "card" },
    element("div", { class: "drawing small-drawing" }, await structureDrawing(trial.structure)),
    element(
      "div",
      { class: "card-text" },
      element("strong", { class: trial.names.length ? "" : "muted" }, name),
      element("span", { class: "muted small" }, who),
      element("progress", { max: trial.epochs, value: trial.epoch, "aria-label": `${name}: ${told}` }),
      element("span", { class: "small" }, `${told} · MRR ${mrr(trial.valid_mrr)}`),
    ),
  );
}

async function showResults(strategy) {
  const found = await ask("/api/leaderboard", { limit: rows });
  const any = found.leaderboard.length > 0;
  for (const part of ["best", "curves", "standings"]) show(part, any);
  if (!any) return;
  await showBest(found, lacksFinals(found, strategy));
  await showLeaderboard(found);
  byId("search-curve").replaceChildren(await drawing("/drawings/search.svg"));
  byId("learning-curves").replaceChildren(await drawing("/drawings/curves.svg"));
}

/** Whether the winner is the best guess, as fresh seeds had no time. */
function lacksFinals(found, strategy) {
  return found.decided_by === "trainings" && strategy === "free" && found.ending === OUT_OF_TIME;
}

async function showBest(found, isGuess) {
  const best = found.best;
  const named = isGuess ? "The best guess" : "The winner";
  say("best-title", found.state === "ended" || found.state === "training" ? named : "Best so far");
  const sampled = found.playoff ? " in the search" : "";
  byId("best-drawing").replaceChildren(await structureDrawing(best.structure));
  say("best-name", best.names.length ? best.names.join(", ") : "A new structure");
  say("best-measured", `Validation MRR ${measured(best)}${sampled}`);
  say("best-formula", best.formula);
  const guess = isGuess ? ["The time ended before the finals: it is the best guess from all trainings"] : [];
  const lines = [...guess, ...chances(best), ...onTheWhole(found.playoff ?? [])];
  byId("best-chances").replaceChildren(...lines.map((line) => element("li", {}, line)));
}

function measured(row) {
  const spread = row.spread === null ? "" : ` ± ${mrr(row.spread)}`;
  return `${mrr(row.valid_mrr)}${spread} (${row.seeds === 1 ? "1 seed" : `${row.seeds} seeds`})`;
}

function chances(best) {
  const lines = [];
  if (best.beats_runner_up !== null) {
    lines.push(`Better than the runner-up with probability ${best.beats_runner_up.toFixed(2)}`);
  }
  const name = best.human?.names[0] ?? "the best human-designed one";
  if (best.human && best.beats_human !== null) {
    lines.push(`Better than ${name}, the best human-designed one, ${measured(best.human)}, with probability ${best.beats_human.toFixed(2)}`);
  } else if (best.human && JSON.stringify(best.human.structure) !== JSON.stringify(best.structure)) {
    lines.push(`Ahead of ${name}, the best human-designed one, ${measured(best.human)}; one seed each does not tell how surely`);
  } else if (best.human) {
    lines.push("The best human-designed one: no other was found to be better");
  }
  return lines;
}

function onTheWhole(playoff) {
  if (!playoff.length) return [];
  const told = playoff.map((row) => `${mrr(row.valid_mrr)} ${row.names[0] ?? JSON.stringify(row.structure)}`);
  return [`Trained in full: ${told.join(", ")}`];
}

async function showLeaderboard(found) {
  const drawn = await Promise.all(found.leaderboard.map((row, place) => line(row, place + 1)));
  byId("leaderboard").tBodies[0].replaceChildren(...drawn);
  const first = `the first ${MOST_ROWS} of ${whole(found.structures)}`;
  const left = found.structures > MOST_ROWS;
  show("more", found.structures > found.leaderboard.length && rows < MOST_ROWS);
  say("more", left ? `Show ${first}` : `Show all ${found.structures}`);
  show("left", left && rows >= MOST_ROWS);
  say("left", `These are ${first}.`);
  found.leaderboard.forEach((row, place) => places.set(JSON.stringify(row.structure), place + 1));
}

async function line(row, place) {
  const before = places.get(JSON.stringify(row.structure));
  const moved = version && (before === undefined || place < before);
  return element(
    "tr",
    { class: moved ? "moved" : "" },
    element("td", { class: "number" }, String(place)),
    element("td", {}, element("div", { class: "drawing row-drawing" }, await structureDrawing(row.structure))),
    element("td", {}, row.names.length ? row.names.join(", ") : element("span", { class: "muted" }, "–")),
    element("td", { class: "number" }, mrr(row.valid_mrr)),
    element("td", { class: "number" }, row.spread === null ? "–" : mrr(row.spread)),
    element("td", { class: "number" }, String(row.seeds)),
    element("td", { class: "number" }, whole(row.epochs)),
    element("td", { class: "number" }, String(row.blocks)),
  );
}

byId("more").addEventListener("click", async () => {
  rows = MOST_ROWS;
  await showLeaderboard(await ask("/api/leaderboard", { limit: rows }));
});
look();
