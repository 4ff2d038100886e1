"use strict";
(() => {
const all = (selector, root = document) => [...root.querySelectorAll(selector)];
const make = (tag, more = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), more);
  element.append(...children);
  return element;
};
const UNITS = { k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18, KiB: 1024, MiB: 1048576, GiB: 1073741824 };
const shown = (cell) => all("small", cell).reduce((text, small) => text.replace(small.textContent, ""), cell.textContent).trim();
const value = (cell) => {
  const found = shown(cell).replace(/[\s\u2009\u00a0]/g, "").match(/^[≥≤<]?(-?\d*\.?\d+(?:e-?\d+)?)([kMGTPE]i?B?)?/);
  return found ? found[1] * (UNITS[found[2]] ?? 1) : null;
};

/** Writes the cells into rows that leave out those they share with the row before, which sorting and filtering tear apart. */
function fill(table) {
  let before = null;
  for (const row of table.tBodies[0].rows) {
    if (before && !row.cells[0].textContent.trim()) {
      for (const [index, cell] of [...row.cells].entries()) {
        if (cell.textContent.trim()) break;
        cell.innerHTML = before.cells[index].innerHTML;
      }
    }
    before = row;
  }
}

function sort(table, column, head) {
  fill(table);
  const down = head.getAttribute("aria-sort") !== "descending" && column > 0 || head.getAttribute("aria-sort") === "ascending";
  for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = all("tbody tr", table).map((row) => [row, value(row.cells[column]), shown(row.cells[column])]);
  rows.sort(([, a, s], [, b, t]) => a === null || b === null
    ? (a === null) - (b === null) || (down ? t.localeCompare(s) : s.localeCompare(t))
    : down ? b - a : a - b);
  table.tBodies[0].append(...rows.map(([row]) => row));
}

/** Interquartile mean over all runs of the columns that are shown. */
function aggregate(table, hidden) {
  const rows = all("tbody tr", table);
  for (const row of rows) {
    const runs = [...row.cells].filter((cell, index) => cell.dataset.runs && !hidden.has(index))
      .flatMap((cell) => cell.dataset.runs.split(" ").map(Number)).sort((a, b) => a - b);
    const target = row.cells[1], cut = Math.floor(runs.length / 4), middle = runs.slice(cut, runs.length - cut);
    row.whole ??= target.innerHTML;
    const isWhole = ![...row.cells].some((cell, index) => cell.dataset.runs && hidden.has(index));
    if (isWhole || !middle.length) target.innerHTML = row.whole;
    else target.textContent = (middle.reduce((a, b) => a + b) / middle.length / 100).toFixed(1);
    if (target.style.getPropertyValue("--h")) target.style.setProperty("--h", Math.max(0, value(target) ?? 0));
  }
  sort(table, 1, make("th", {}));
  table.tBodies[0].append(...rows.filter((row) => row.classList.contains("soft")));
}

function choose(table, box, isHeat) {
  const hidden = new Set();
  const heads = all("thead th", table);
  const names = heads.map((head) => head.firstChild.textContent.trim());
  const follow = isHeat && all("td[data-runs]", table).length > 0;
  const show = () => {
    for (const row of table.rows) for (const [index, cell] of [...row.cells].entries()) cell.hidden = hidden.has(index);
    if (!follow) return;
    aggregate(table, hidden);
    // The cards answer for all tasks.
    for (const cards of all(".answers")) cards.style.opacity = hidden.size ? 0.4 : "";
  };
  const list = make("fieldset", {}, make("legend", { textContent: follow ? "The score follows the tasks that are shown." : "Columns" }));
  const more = make("details", { className: "pick" }, make("summary", { textContent: follow ? "Tasks" : "Columns" }), list);
  more.addEventListener("toggle", () => {
    if (list.childElementCount > 1) return;
    names.forEach((name, index) => {
      if (index < (follow ? 2 : 1)) return;
      const input = make("input", { type: "checkbox", checked: true });
      input.addEventListener("change", () => { hidden[input.checked ? "delete" : "add"](index); show(); });
      list.append(make("label", {}, input, ` ${name}`));
    });
  });
  box.append(more);
}

for (const whole of all(".table")) {
  const table = whole.querySelector("table"), count = table.tBodies[0].rows.length;
  if (count < 3) continue;
  for (const [column, head] of all("thead th", table).entries()) {
    const button = make("button", { type: "button" }, head.firstChild);
    button.addEventListener("click", () => sort(table, column, head));
    head.prepend(button);
  }
  const bar = make("div", { className: "tools" });
  if (count > 9) {
    const filter = make("input", { type: "search", placeholder: "filter rows" });
    filter.setAttribute("aria-label", `Filter the rows of ${table.caption?.textContent ?? "the table"}`);
    filter.addEventListener("input", () => {
      fill(table);
      const words = filter.value.toLowerCase().split(/\s+/);
      for (const row of table.tBodies[0].rows) row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
    });
    bar.append(filter);
  }
  const label = whole.querySelector(".more");
  if (label) bar.append(label);
  if (table.rows[0].cells.length > 4) choose(table, bar, whole.classList.contains("heat"));
  if (bar.childElementCount) whole.prepend(bar);
}

const tip = make("div", { className: "tip", hidden: true });
tip.setAttribute("role", "status");
document.body.append(tip);
const told = (element) => element?.querySelector(":scope>title")?.textContent;
addEventListener("pointermove", ({ target, clientX, clientY }) => {
  const chart = target.closest?.("svg.chart"), cell = target.closest?.(".heat td");
  let text = "";
  if (chart) {
    if (!chart.wide) {
      chart.wide = true;
      for (const line of all(".o .line", chart)) { const hit = line.cloneNode(); hit.setAttribute("class", "hit"); line.after(hit); }
    }
    const group = target.closest("g.s,g.map");
    text = [...new Set([told(group), target !== group && told(target)])].filter(Boolean).join("\n");
  } else if (cell && !cell.closest(".heat").querySelector(".more input").checked) {
    const row = shown(cell.parentElement.cells[0]);
    const head = cell.closest("table").rows[0].cells[cell.cellIndex];
    text = [`${row}, ${head.innerText.replace(/\s+/g, " ")}`, shown(cell), ...all("small", cell).map((small) => small.textContent)].join("\n");
  }
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  tip.style.left = `${Math.min(clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${clientY + 18 + tip.offsetHeight > innerHeight ? clientY - tip.offsetHeight - 10 : clientY + 18}px`;
});
})();
