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
          near.delete(entry.target);
          continue;
        }
        near.add(entry.target);
        draw(entry.target);
        refresh(entry.target);
      }
    },
    { rootMargin: "300px" }
  );
  document.querySelectorAll(".plot").forEach((div) => seen.observe(div));

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
  window.addEventListener("beforeprint", () => document.querySelectorAll(".plot").forEach(draw));

  const all = document.getElementById("all");
  const buttons = [...document.querySelectorAll("#filter [data-slot]")];
  function filter() {
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(!hidden.has(Number(button.dataset.slot))));
    }
    for (const part of document.querySelectorAll("tr[data-slot], .maps [data-slot], details[data-slot]")) {
      part.hidden = hidden.has(Number(part.dataset.slot));
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
