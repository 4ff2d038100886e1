"use strict";
(function () {
  const hidden = new Set();
  const root = document.documentElement;
  const variable = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const narrow = () => window.matchMedia("(max-width: 40rem)").matches;
  const drawn = new Set();

  function fade(colour, share) {
    const number = parseInt(colour.slice(1), 16);
    return `rgba(${number >> 16}, ${(number >> 8) & 255}, ${number & 255}, ${share})`;
  }

  function paint(data, layout) {
    const [bg, ink, soft, grid] = ["--bg", "--ink", "--soft", "--grid"].map(variable);
    for (const trace of data) {
      if (trace.type === "heatmap") continue;
      const colour = typeof trace.meta === "number" ? variable("--c" + (trace.meta % 8)) : soft;
      trace.line = Object.assign({}, trace.line, { color: colour });
      if (trace.fill === "toself") trace.fillcolor = fade(colour, 0.1);
      if (trace.marker) {
        trace.marker = Object.assign({}, trace.marker, { color: colour, line: { color: bg, width: 1 } });
      }
      for (const error of ["error_x", "error_y"]) {
        if (trace[error]) trace[error] = Object.assign({}, trace[error], { color: fade(colour, 0.6) });
      }
      trace.visible = !hidden.has(trace.meta);
    }
    layout.paper_bgcolor = layout.plot_bgcolor = "rgba(0,0,0,0)";
    layout.font = { color: ink, size: 12, family: "system-ui, sans-serif" };
    layout.modebar = { bgcolor: "rgba(0,0,0,0)", color: soft, activecolor: ink };
    layout.hoverlabel = { bgcolor: bg, bordercolor: grid, font: { color: ink }, namelength: -1 };
    for (const axis of ["xaxis", "yaxis"]) {
      layout[axis] = Object.assign({}, layout[axis], { gridcolor: grid, linecolor: grid, tickcolor: grid });
    }
    for (const shape of layout.shapes || []) shape.line = Object.assign({}, shape.line, { color: soft });
    for (const note of layout.annotations || []) note.font = { color: soft, size: 11 };
    return [data, layout];
  }

  function draw(div) {
    if (drawn.has(div)) return;
    const source = JSON.parse(div.nextElementSibling.textContent);
    drawn.add(div);
    const [data, layout] = paint(source.data, source.layout);
    const settings = {
      responsive: true,
      displaylogo: false,
      typesetMath: false,
      showLink: false,
      displayModeBar: narrow() ? false : "hover",
      modeBarButtonsToRemove: ["lasso2d", "select2d"],
    };
    // A finger that scrolls the page must not zoom.
    if (narrow()) layout.dragmode = false;
    Plotly.newPlot(div, data, layout, settings).catch((error) => {
      div.textContent = "This figure cannot be drawn: " + error;
    });
  }

  // Figures are drawn when they come near, and drawn again only then: a page may have hundreds.
  const near = new Set();
  const stale = new Set();
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) {
          for (const div of entry.target.querySelectorAll(".plot")) near.delete(div);
          continue;
        }
        // Visible first: a plot takes the width of its place.
        entry.target.classList.add("drawn");
        for (const div of entry.target.querySelectorAll(".plot")) {
          near.add(div);
          draw(div);
          refresh(div);
        }
      }
    },
    { rootMargin: "300px" }
  );
  document.querySelectorAll(".live").forEach((live) => seen.observe(live.parentElement));

  function refresh(div) {
    if (!stale.has(div) || !div.data) return;
    stale.delete(div);
    const [data, layout] = paint(div.data, div.layout);
    Plotly.react(div, data, layout);
  }

  function repaint() {
    for (const div of drawn) {
      stale.add(div);
      if (near.has(div)) refresh(div);
    }
  }
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);

  const all = document.getElementById("all");
  const buttons = [...document.querySelectorAll("#filter [data-slot]")];
  function filter() {
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(!hidden.has(Number(button.dataset.slot))));
    }
    for (const part of document.querySelectorAll("tr[data-slot], svg [data-slot], .maps [data-slot], details[data-slot]")) {
      part.toggleAttribute("hidden", hidden.has(Number(part.dataset.slot)));
    }
    all.hidden = hidden.size === 0;
    repaint();
  }
  for (const button of buttons) {
    button.addEventListener("click", () => {
      const slot = Number(button.dataset.slot);
      if (!hidden.delete(slot)) hidden.add(slot);
      filter();
    });
    button.addEventListener("dblclick", () => {
      const slot = Number(button.dataset.slot);
      for (const other of buttons) hidden.add(Number(other.dataset.slot));
      hidden.delete(slot);
      filter();
    });
  }
  all.addEventListener("click", () => {
    hidden.clear();
    filter();
  });

  // On a narrow screen each row is a card, and each number needs its head beside it.
  for (const table of document.querySelectorAll("table")) {
    const heads = [...table.querySelectorAll("th")].map((head) =>
      [...head.childNodes].map((node) => node.textContent).join(", ")
    );
    for (const row of table.tBodies[0].rows) {
      [...row.cells].forEach((cell, i) => (cell.dataset.head = heads[i]));
    }
  }

  // Tables of numbers are sorted by the column whose head is pressed: largest first, then smallest first.
  const units = { k: 1e3, M: 1e6, G: 1e9, T: 1e12, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
  function value(cell) {
    const text = cell.textContent.replace(/\u2009/g, "").trim();
    const found = /^[≥<]?\s*(-?\d+(?:\.\d+)?(?:e-?\d+)?)(?:\s(k|M|G|T|[KMGT]iB)\b)?/.exec(text);
    return found ? Number(found[1]) * (units[found[2]] || 1) : text.startsWith("–") ? null : text;
  }
  function compare(a, b) {
    if (a === null || b === null) return 0;
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  }
  function sort(head, column) {
    const body = head.closest("table").tBodies[0];
    const rows = [...body.rows].map((row) => [value(row.cells[column]), row]);
    const numbers = rows.some(([key]) => typeof key === "number");
    const before = head.getAttribute("aria-sort");
    const down = before ? before === "ascending" : numbers;
    // Rows without a value stay at the end.
    rows.sort(([a], [b]) => (a === null) - (b === null) || (down ? compare(b, a) : compare(a, b)));
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    body.append(...rows.map(([, row]) => row));
  }
  for (const table of document.querySelectorAll("table:not(.words)")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sort(head, column));
      head.append(button);
    });
  }

  // A link to records opens what they are folded into.
  function unfold() {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && document.getElementById(id);
    if (!target) return;
    for (let part = target; part; part = part.parentElement) {
      if (part.tagName === "DETAILS") part.open = true;
    }
    target.scrollIntoView();
  }
  window.addEventListener("hashchange", unfold);
  unfold();
})();
