// A text field that completes labels as one types: the WAI-ARIA combobox with a list, by mouse and by keyboard.
import { ask, element, labelled, whole } from "/assets/common.js";

const PAUSE = 60; // milliseconds after a key, so that a fast typist asks once

/** Put a completing field into a labelled box; `chosen` is told of a label that was taken from the list or entered. */
export function combobox(box, id, kind, chosen) {
  const many = kind === "relation" ? "relations" : "entities";
  const list = element("ul", { id: `${id}-list`, role: "listbox", class: "options", hidden: true, "aria-label": many });
  const input = element("input", {
    id,
    type: "text",
    role: "combobox",
    spellcheck: "false",
    autocapitalize: "off",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": `${id}-list`,
  });
  box.append(element("div", { class: "combobox" }, input, list));
  let labels = [];
  let listed = ""; // the text that the labels complete: the field may hold another by now
  let taken = ""; // the label that was last chosen: looking further, one wants others than it
  let active = -1;
  let timer = 0;
  let asked = new AbortController();

  function close() {
    clearTimeout(timer);
    asked.abort();
    list.hidden = true;
    active = -1;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function take(label) {
    input.value = taken = label;
    close();
    chosen(label);
  }

  function mark(place) {
    active = place;
    [...list.children].forEach((option, at) => option.setAttribute("aria-selected", String(at === place)));
    if (place < 0) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", list.children[place].id);
    list.children[place].scrollIntoView({ block: "nearest" });
  }

  async function complete() {
    asked.abort();
    asked = new AbortController();
    const text = input.value === taken ? "" : input.value;
    try {
      const found = await ask(`/api/${many}`, { q: text, limit: 12 }, asked.signal);
      listed = text;
      labels = found[many].map((row) => row[kind]);
      list.replaceChildren(...found[many].map((row, place) => option(row, place)));
      list.hidden = !labels.length;
      input.setAttribute("aria-expanded", String(labels.length > 0));
      mark(-1);
    } catch (error) {
      if (error.name !== "AbortError") close();
    }
  }

  function option(row, place) {
    return element(
      "li",
      {
        id: `${id}-option-${place}`,
        role: "option",
        "aria-selected": "false",
        mousedown: (event) => {
          event.preventDefault(); // the field keeps the focus
          take(row[kind]);
        },
      },
      element("span", { class: "option-label" }, labelled(row[kind])),
      element("span", { class: "muted small", "aria-hidden": "true" }, whole(row.uses)),
    );
  }

  /** What Enter stands for: the marked label, or the text itself, or the first label of a list that completes it. */
  function meant() {
    if (active >= 0) return labels[active];
    return listed !== input.value || labels.includes(input.value) ? input.value : labels[0];
  }

  function key(event) {
    const open = !list.hidden;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!open) return complete();
      const step = event.key === "ArrowDown" ? 1 : -1;
      mark((active + step + labels.length) % labels.length);
    } else if (event.key === "Enter" && (open || input.value)) {
      event.preventDefault();
      take(open ? meant() : input.value);
    } else if (event.key === "Tab" && (active >= 0 || (input.value && input.value !== taken))) {
      take(active >= 0 ? labels[active] : input.value);
    } else if (event.key === "Escape" && open) {
      event.preventDefault();
      close();
    }
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    mark(-1);
    timer = setTimeout(complete, PAUSE);
  });
  input.addEventListener("focus", () => {
    input.select();
    complete();
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", key);
  return {
    get value() {
      return input.value;
    },
    set value(text) {
      input.value = taken = text;
    },
    focus: () => input.focus(),
  };
}
