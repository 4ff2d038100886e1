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
