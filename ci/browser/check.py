"""Opens every page of a report in Chromium, uses its controls and takes screenshots.

usage: check.py CHROMIUM REPORT_DIR SCREENSHOT_DIR [--hostile]

With --hostile the records of the report contain scripts in their names; the test fails if one has run.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from devtools import Browser, Page  # noqa: E402

VIEWS = [
    # name, width, height, phone, dark
    ("desktop-light", 1440, 900, False, False),
    ("desktop-dark", 1440, 900, False, True),
    ("tablet-light", 768, 1024, True, False),
    ("tablet-dark", 768, 1024, True, True),
    ("phone-light", 390, 844, True, False),
    ("phone-dark", 390, 844, True, True),
]
# Number of windows below which the first page of a report is, and its size in bytes.
MOST_SCREENS = {"desktop": 12, "tablet": 16, "phone": 20}
MOST_BYTES = 1_500_000
# Width of a printed page, A4 in landscape with margins of 12 mm, in pixels.
PAPER = 1032
# Longest time to load a page, in seconds, on a slow machine.
LOAD_SECONDS = 60
# Number of filters up to which all are used; each takes a second on a page with thousands of rows.
MOST_FILTERS = 60


class Findings:
    """Findings of the test: failures end it with an error, remarks are only printed."""

    def __init__(self):
        self.failures, self.remarks, self.checks = [], [], 0

    def must(self, holds, text):
        self.checks += 1
        if not holds:
            self.failures.append(text)

    def remark(self, text):
        self.remarks.append(text)


def look(browser, report, html, view, shots, found, hostile):
    name, width, height, phone, dark = view
    page_name = str(html.relative_to(report).with_suffix("")).replace("/", "-")
    where = f"{html.relative_to(report)} ({name})"
    page = Page(browser, width, height, phone, dark)
    seconds = page.open(html.resolve().as_uri(), LOAD_SECONDS)
    page.call("Runtime.evaluate", {"expression": SCRIPT + "; void (window.test = test)"})
    if shots:
        page.screenshots(shots / f"{page_name}-{name}-closed", most=1)
    size = page.run("test.size()")
    found.must(size["first"], f"{where}: the first answer is not in the first window")
    if html.name == "index.html" and html.parent.name in ("zoo", "all"):
        most = MOST_SCREENS[name.split("-")[0]]
        found.must(size["screens"] < most, f"{where}: {size['screens']:.1f} windows high, of {most}")
        found.must(html.stat().st_size <= MOST_BYTES, f"{where}: {html.stat().st_size} bytes")
    page.run("test.unfold()")
    at = 0
    while at is not None:
        at = page.run(f"test.scroll({at})")
    plots = page.run("test.plots()")
    for heading in plots["empty"]:
        found.must(False, f"{where}: the plot below “{heading}” is not drawn")
    # The front has a figure only if it has an aggregate; pages of workloads have some.
    if html.parent.name in ("tasks", "saboteur"):
        found.must(plots["drawn"] > 0, f"{where}: no plot is drawn")
    wide = page.run("test.overflow()")
    found.must(
        wide["page"] <= wide["width"],
        f"{where}: {wide['page']} px wide in a window of {wide['width']}: {'; '.join(wide['found'])}",
    )
    if phone and not dark:
        sideways = page.run("test.sideways()")
        if sideways:
            found.remark(f"{where}: {len(sideways)} boxes scroll sideways: {'; '.join(sideways[:4])}")
    low = page.run("test.contrast()")
    found.must(not low, f"{where}: text with a contrast below 4.5: {low}")
    wrong = page.run(f"test.promises('{html.parent.name}')")
    found.must(not wrong, f"{where}: {'; '.join(wrong[:5])}")
    checks = [("lacks", "lacks"), ("marks", "marks:")]
    # Names that are scripts are wider than any label.
    if not hostile or html.parent.name == "saboteur":
        checks.append(("cut", "labels are cut or have braces:"))
    for check, text in checks:
        wrong = page.run(f"test.{check}()")
        found.must(not wrong, f"{where}: {text} {'; '.join(wrong[:5])}")
    labels = page.run("test.labels()")
    if labels["overlaps"]:
        some = "; ".join(labels["overlaps"][:4])
        found.remark(f"{where}: {len(labels['overlaps'])} labels lie on each other: {some}")
    if labels["small"]:
        found.remark(f"{where}: {labels['small']} labels are less than 8 px high")
    if shots:
        page.screenshots(shots / f"{page_name}-{name}", most=2 if dark else 6)
    used = 0
    if name == "desktop-light":
        used = filters(page, where, found)
        page.print_on(PAPER)
        wide = page.run("test.printed()")
        found.must(not wide, f"{where}: printed, tables lose columns: {'; '.join(wide[:5])}")
    if hostile:
        found.must(not page.run("'hostile' in window"), f"{where}: a script in a record's name ran")
    url = html.resolve().as_uri()
    foreign = [r for r in page.requests if r.split("#")[0] != url and not r.startswith(("data:", "blob:", "about:"))]
    found.must(not foreign, f"{where}: asks for {foreign[:5]}")
    found.must(not page.complaints, f"{where}: {'; '.join(page.complaints[:5])}")
    page.close()
    return f"{where}: {plots['drawn']} plots, {used} filters, {size['screens']:.1f} windows, loaded in {seconds:.1f} s"


def filters(page, where, found):
    """Uses filters once, on a page with very many some of every part, and a legend."""
    count = page.run("test.controls().length")
    chosen = range(count)
    if count > MOST_FILTERS:
        # Encodings come first, then the heads of tables.
        chosen = [*range(MOST_FILTERS // 2), *range(MOST_FILTERS // 2, count, 2 * count // MOST_FILTERS + 1)]
        count = len(chosen)
    for index in chosen:
        if index < page.run("test.controls().length"):
            wrong = page.run(f"test.use({index})")
            found.must(wrong is None, f"{where}: filter {wrong}")
    return count


SCRIPT = (pathlib.Path(__file__).parent / "page.js").read_text(encoding="utf-8")


def main():
    program, report = sys.argv[1], pathlib.Path(sys.argv[2])
    shots, hostile = pathlib.Path(sys.argv[3]), "--hostile" in sys.argv[4:]
    pages = sorted(report.rglob("*.html"))
    if not any(page.name in ("index.html", "report.html") for page in pages):
        sys.exit(f"{report}: no index.html; give the folder that `pe-bench report --out` wrote")
    shots.mkdir(parents=True, exist_ok=True)
    found = Findings()
    browser = Browser(program)
    try:
        for html in pages:
            for view in VIEWS[:1] if hostile else VIEWS:
                print(look(browser, report, html, view, None if hostile else shots, found, hostile), flush=True)
    finally:
        browser.close()
    for remark in found.remarks:
        print(f"remark: {remark}")
    for failure in found.failures:
        print(f"FAILED: {failure}")
    print(f"{found.checks} checks, {len(found.failures)} failed, {len(found.remarks)} remarks")
    sys.exit(1 if found.failures else 0)


if __name__ == "__main__":
    main()
