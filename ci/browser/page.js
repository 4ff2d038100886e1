// What the browser test asks of a page; each function is called by ci/browser/check.py.
const test = {
  /** Opens every `details`, whose figures are drawn when they come near. */
  unfold() {
    for (const details of document.querySelectorAll("details")) details.open = true;
  },

  /** Scrolls through some windows from a height on, so that what is drawn late is drawn; returns where to go on, or null at
   *  the end. A long page takes many calls, each of which must answer. */
  async scroll(from) {
    let y = from;
    for (let windows = 0; windows < 10 && y < document.body.scrollHeight; windows++, y += innerHeight) {
      scrollTo(0, y);
      await new Promise((done) => setTimeout(done, 25));
    }
    if (y < document.body.scrollHeight) return y;
    scrollTo(0, 0);
    await new Promise((done) => setTimeout(done, 200));
    return null;
  },

  visible(element) {
    const box = element.getBoundingClientRect();
    return box.width > 0 && box.height > 0 && getComputedStyle(element).visibility !== "hidden";
  },

  heading(element) {
    for (let at = element; at; at = at.parentElement) {
      for (let before = at; before; before = before.previousElementSibling) {
        if (/^(H[1-6]|SUMMARY)$/.test(before.tagName)) return before.textContent.trim();
      }
    }
    return "top of the page";
  },

  /** Number of drawn figures, and the headings of those without a mark. */
  plots() {
    const svgs = [...document.querySelectorAll("figure svg")];
    const marked = (svg) => test.visible(svg) && svg.querySelector("path, line, circle, rect:not(.bg), polyline");
    return { drawn: svgs.filter(marked).length, empty: svgs.filter((svg) => !marked(svg)).map(test.heading) };
  },

  /** Elements that make the page wider than its window, outermost first. */
  overflow() {
    const width = document.documentElement.clientWidth;
    const page = Math.max(document.documentElement.scrollWidth, document.body.scrollWidth);
    const found = [];
    if (page > width) {
      for (const element of document.body.querySelectorAll("*")) {
        const right = element.getBoundingClientRect().right + scrollX;
        let scroller = element.parentElement;
        while (scroller && !/auto|scroll|hidden/.test(getComputedStyle(scroller).overflowX)) scroller = scroller.parentElement;
        if (right > width + 1 && !scroller) found.push(`${element.tagName.toLowerCase()}.${element.getAttribute("class") ?? ""} to ${Math.round(right)} px below “${test.heading(element)}”`);
      }
    }
    return { page, width, found: found.slice(0, 5) };
  },

  /** Boxes whose content must be scrolled sideways. */
  sideways() {
    const found = [];
    for (const box of document.querySelectorAll("div, figure, section")) {
      if (/auto|scroll/.test(getComputedStyle(box).overflowX) && box.scrollWidth > box.clientWidth + 1 && test.visible(box))
        found.push(`“${test.heading(box)}” ${box.scrollWidth} px in ${box.clientWidth}`);
    }
    return found;
  },

  /** Contrast of text with the page, after WCAG 2. */
  contrast() {
    // Any notation, as the bytes that would be painted.
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
    const known = {};
    const parse = (text) => {
      if (!known[text]) {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = text;
        canvas.fillRect(0, 0, 1, 1);
        known[text] = [...canvas.getImageData(0, 0, 1, 1).data];
      }
      return known[text];
    };
    const light = ([r, g, b]) => {
      const part = (c) => ((c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
      return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    const behind = (element) => {
      for (let at = element; at; at = at.parentElement) {
        const colour = parse(getComputedStyle(at).backgroundColor);
        if (colour[3] > 250) return colour;
      }
      return matchMedia("(prefers-color-scheme: dark)").matches && getComputedStyle(document.documentElement).colorScheme.includes("dark") ? [18, 18, 18] : [255, 255, 255];
    };
    const worst = {};
    for (const element of document.querySelectorAll("body, h1, h2, h3, p, li, td, th, td small, summary, figcaption, a, code, label, button")) {
      if (!test.visible(element) || !element.textContent.trim()) continue;
      const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
      const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      const name = element.tagName.toLowerCase() + (element.className && typeof element.className === "string" ? `.${element.className.split(" ")[0]}` : "");
      if (ratio < 4.5 && !(worst[name] <= ratio)) worst[name] = Math.round(100 * ratio) / 100;
    }
    return worst;
  },

  /** Labels of one drawing that lie on each other, and letters too small to read. */
  labels() {
    const overlaps = [];
    let small = 0;
    for (const svg of document.querySelectorAll("figure svg")) {
      const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim() && test.visible(text));
      const boxes = texts.map((text) => text.getBoundingClientRect());
      for (let i = 0; i < boxes.length; i++) {
        if (boxes[i].height < 8) small++;
        for (let j = 0; j < i; j++) {
          const [a, b] = [boxes[i], boxes[j]];
          const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (across > 2 && down > 0.3 * Math.min(a.height, b.height))
            overlaps.push(`“${texts[j].textContent}” and “${texts[i].textContent}” below “${test.heading(svg)}”`);
        }
      }
    }
    return { overlaps, small };
  },

  /** What a page lacks for links, searches and readers who do not see it. */
  lacks() {
    const lacks = [];
    const need = (holds, text) => { if (!holds && !lacks.includes(text)) lacks.push(text); };
    need(document.title.length > 3, "a title");
    need(document.querySelector("meta[name=description]")?.content, "a description");
    need(document.querySelector("link[rel=icon]"), "an icon");
    need(document.querySelectorAll("main").length === 1, "one main part");
    for (const heading of document.querySelectorAll("main :is(h2, h3, h4, h5, h6)")) need(heading.id, `an id of “${heading.textContent}”`);
    for (const summary of document.querySelectorAll("main summary[class]")) need(summary.parentElement.id, `an id of “${summary.textContent}”`);
    for (const table of document.querySelectorAll("table")) {
      need(table.caption?.textContent.trim(), `a caption below “${test.heading(table)}”`);
      for (const head of table.querySelectorAll("th")) need(head.scope, `a scope of “${head.textContent}”`);
    }
    for (const svg of document.querySelectorAll("figure svg"))
      need(svg.getAttribute("role") === "img" && /\d|No values/.test(svg.getAttribute("aria-label") ?? ""), `a text with values for the drawing below “${test.heading(svg)}”`);
    const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
    need(new Set(ids).size === ids.length, "ids that are unique");
    return lacks;
  },

  /** Labels of drawings that are cut, or have braces as names of encodings have. */
  cut() {
    const found = [];
    for (const svg of document.querySelectorAll("svg.chart")) {
      const box = svg.getBoundingClientRect();
      for (const text of svg.querySelectorAll("text")) {
        if (!test.visible(text)) continue;
        const { left, right, top, bottom } = text.getBoundingClientRect();
        if (left < box.left - 1 || right > box.right + 1 || top < box.top - 1 || bottom > box.bottom + 1 || /[…{}]/.test(text.textContent)) found.push(text.textContent);
      }
    }
    return [...new Set(found)];
  },

  /** Line charts with more than seven lines in colour, and marks with a contrast below 3. */
  marks() {
    const found = [];
    const light = (text) => {
      const part = (c) => ((c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
      const [r, g, b] = text.match(/[\d.]+/g).map(Number);
      return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    const known = {};
    for (const svg of document.querySelectorAll("svg.chart")) {
      const ground = getComputedStyle(svg.querySelector(".bg")).fill;
      // The lines of each of several small charts follow its frame.
      let [names, most] = [new Set(), 0];
      for (const group of svg.querySelectorAll("g.map, g.s:not(.o)")) {
        if (group.matches(".map")) names = new Set();
        else if (group.querySelector(".line")) names.add(group.querySelector("title").textContent);
        most = Math.max(most, names.size);
      }
      if (most > 7) found.push(`${most} lines in colour in “${(svg.getAttribute("aria-label") ?? test.heading(svg)).slice(0, 60)}”`);
      for (const mark of svg.querySelectorAll("use, .line, .bar")) {
        const style = getComputedStyle(mark);
        const colour = mark.tagName === "use" ? style.fill : style.stroke;
        if (colour === "none") continue;
        known[colour + ground] ??= (Math.max(light(colour), light(ground)) + 0.05) / (Math.min(light(colour), light(ground)) + 0.05);
        if (known[colour + ground] < 3) found.push(`${colour} on ${ground}: ${known[colour + ground].toFixed(2)}`);
      }
    }
    return [...new Set(found)];
  },

  /** Height of the page in windows, and whether the first answer stands in the first one. */
  size() {
    const answer = document.querySelector(".answers li");
    return { screens: document.documentElement.scrollHeight / innerHeight, first: !answer || answer.getBoundingClientRect().bottom + scrollY <= innerHeight };
  },

  /** What a kind of page has for its reader, beyond what every page has, and does not show or do; `kind` is the folder of the page. */
  async promises(kind) {
    const found = [];
    const need = (holds, text) => { if (!holds) found.push(text); };
    const visible = (selector) => [...document.querySelectorAll(selector)].filter(test.visible);
    const answers = visible(".answers li");
    if (answers.length || kind === "zoo") need(answers.length === 3 && answers.every((answer) => /\d%/.test(answer.textContent)), `${answers.length} answers with a score, of 3`);
    if (kind === "tasks") {
      need(document.querySelector("pre u, pre b, pre mark, .text u, .text b, mark"), "no sample with a marked answer");
      const rows = document.querySelector("main table")?.tBodies[0].rows.length;
      need(rows >= 1 && rows <= 5, `${rows} rows in the first table, of 1 to 5`);
    }
    if (kind === "encodings") {
      need(document.querySelector("math"), "no formula");
      for (const way of ["# Rust", "# command line", "# PyTorch"]) need(document.body.innerText.includes(way), `no code for “${way}”`);
    }
    const heat = document.querySelector(".heat table");
    if (!heat) return found;
    const rows = [...heat.tBodies[0].rows];
    if (innerWidth >= 1440) {
      const heights = rows.map((row) => Math.round(row.getBoundingClientRect().height));
      need(Math.max(...heights) < 2 * Math.min(...heights), `rows of ${Math.min(...heights)} to ${Math.max(...heights)} px in the first table`);
    }
    for (const cell of [heat.tHead.rows[0].cells[1], rows[0].cells[0]]) need(getComputedStyle(cell).position === "sticky", `“${cell.textContent}” scrolls away`);
    // Values under the pointer.
    const cell = rows[0].cells[1];
    cell.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: 9, clientY: 9 }));
    const said = document.querySelector(".tip:not([hidden])")?.textContent ?? "";
    const bare = (text) => text.replace(/\s/g, "");
    need(bare(said).includes(bare(cell.firstChild.textContent)), `the pointer on a cell shows “${said}”`);
    // The order of rows.
    const head = heat.tHead.rows[0].cells[1];
    const scores = () => [...heat.tBodies[0].rows].map((row) => parseFloat(row.cells[1].textContent)).filter((score) => !Number.isNaN(score));
    const sorted = (list) => list.every((score, at) => at === 0 || list[at - 1] <= score);
    const orders = [0, 1].map(() => { head.querySelector("button")?.click(); return scores(); });
    need(orders.some(sorted) && orders.some((order) => sorted([...order].reverse())), "a click on a head does not sort its column");
    // The score of the tasks that are shown.
    const all = () => scores().sort((a, b) => a - b).join();
    const [before, choice] = [all(), heat.closest(".table").querySelector(".pick")];
    if (!choice || !heat.querySelector("td[data-runs]")) return found;
    choice.open = true;
    await new Promise((done) => setTimeout(done, 120));
    const first = choice.querySelector("input");
    first.click();
    need(all() !== before, "the score does not follow the tasks");
    first.click();
    need(all() === before, "the score does not come back with the tasks");
    return found;
  },

  /** Tables that are wider than a printed page. */
  printed() {
    const width = document.documentElement.clientWidth;
    return [...document.querySelectorAll("table")].filter((table) => test.visible(table) && table.getBoundingClientRect().right > width + 1).map((table) => `“${table.caption?.textContent}” to ${Math.round(table.getBoundingClientRect().right)} of ${width} px`);
  },

  /** What a reader can see: rows and their order, and words of the page. */
  state() {
    const rows = [...document.querySelectorAll("tr, li, figure, section, details")].map((row) => (test.visible(row) ? "1" : "0")).join("");
    const order = [...document.querySelectorAll("th")].map((head) => head.getAttribute("aria-sort"));
    return JSON.stringify([rows, order, document.body.innerText.length]);
  },

  controls() {
    return [...document.querySelectorAll("input, select, button")].filter((control) => test.visible(control) && !control.disabled);
  },

  /** Uses a control and its undoing; returns what went wrong, or null. */
  async use(index) {
    const control = test.controls()[index];
    const name = control.labels?.[0]?.textContent.trim() || control.textContent.trim() || control.name || control.id || control.tagName;
    const wait = () => new Promise((done) => setTimeout(done, 120));
    const fire = (type) => control.dispatchEvent(new Event(type, { bubbles: true }));
    const before = test.state();
    let undo;
    if (control.tagName === "SELECT") {
      if (control.options.length < 2) return `${name}: nothing to choose`;
      const old = control.selectedIndex;
      const choose = (option) => { control.selectedIndex = option; fire("input"); fire("change"); };
      choose(old === 0 ? control.options.length - 1 : 0);
      undo = () => choose(old);
    } else if (control.tagName === "INPUT" && /^(text|search)$/.test(control.type)) {
      const old = control.value;
      const write = (text) => { control.value = text; fire("input"); fire("change"); };
      write("zzzz nothing is called so");
      undo = () => write(old);
    } else if (control.type === "radio") {
      const chosen = document.querySelector(`input[type=radio][name="${control.name}"]:checked`);
      if (control.checked) return null;
      control.click();
      undo = () => chosen?.click();
    } else {
      control.click();
      undo = control.type === "checkbox" || control.hasAttribute("aria-pressed") ? () => control.click() : null;
    }
    await wait();
    if (test.state() === before) return `${name}: changes nothing`;
    if (undo) {
      undo();
      await wait();
      if (test.state() !== before) return `${name}: does not restore what it changed`;
    }
    return null;
  },
};
