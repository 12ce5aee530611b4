#!/usr/bin/env python3
"""The console of `tamis serve` in a real browser (Debian's chromium).

usage: console_test.py TAMIS
"""

import os
import sys
import unittest
import urllib.request

import chromium
from served_shop import ServedShop

TAMIS = os.path.abspath(sys.argv[1])
del sys.argv[1]
# Answers of the server that the page shows and the browser notes as well.
NOTED = "Failed to load resource: the server responded with a status of "
CONTRAST = """(() => {
  const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const colour = parse(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility() || element.closest('[disabled], option')) continue;
    const lights = [light(parse(getComputedStyle(element).color)), light(behind(element))].sort();
    const ratio = (lights[1] + 0.05) / (lights[0] + 0.05);
    if (ratio < 4.5) poor.push(`${walker.currentNode.data.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return poor;
})()"""


def colour_count(name, selector="#cells"):
    """JavaScript: how many pixels of the map have the colour --NAME."""
    return f"""(() => {{
      const probe = document.body.appendChild(document.createElement('i'));
      probe.style.color = 'var(--{name})';
      const wanted = getComputedStyle(probe).color.match(/\\d+/g).map(Number);
      probe.remove();
      const map = document.querySelector('{selector}');
      const data = map.getContext('2d').getImageData(0, 0, map.width, map.height).data;
      let count = 0;
      for (let i = 0; i < data.length; i += 4) {{
        if (data[i] === wanted[0] && data[i + 1] === wanted[1] && data[i + 2] === wanted[2]) ++count;
      }}
      return count;
    }})()"""


class ConsoleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.browser = chromium.Browser()
        cls.addClassCleanup(cls.browser.close)
        cls.shop = ServedShop(TAMIS, "--write")
        cls.addClassCleanup(cls.shop.close)

    def open(self, url=None, **more):
        page = self.browser.open((url or self.shop.url) + "/", **more)
        self.addCleanup(page.close)
        self.addCleanup(self.check_complaints, page)
        return page

    def open_live(self, **more):
        page = self.open(**more)
        page.wait("document.querySelector('#connection').textContent.startsWith('live')")
        page.wait("document.querySelector('#server-table tbody tr') && document.querySelector('#sql').value")
        return page

    def check_complaints(self, page):
        complaints = [text for text in page.complaints() if not text.startswith((NOTED, "Canvas2D: Multiple readback"))]
        self.assertEqual(complaints, [])

    def ask(self, page, sql):
        page.evaluate("document.querySelector('#sql').select()")
        page.evaluate("document.querySelector('#sql').focus()")
        page.type(sql)
        page.press("Enter", chromium.CONTROL)
        return page.wait("!document.querySelector('#run').disabled && document.querySelector('#outcome').textContent")

    def test_first_screen_says_what_filters_save(self):
        page = self.open_live()
        self.ask(page, "SELECT * FROM orders WHERE customer = 'customer 77'")
        page.wait("document.querySelector('#saved-sentence').textContent.includes('% of the requests to servers were saved')")
        self.assertRegex(page.text("#saved-start"), r"search(es)?: \d+ of \d+ servers asked, \d+ % spared")
        self.assertRegex(page.text("#saved-now"), r"search(es)?: \d+ of \d+ servers asked")

    def test_query_shows_rows_explanation_and_cells(self):
        page = self.open_live()
        self.assertIn("7 rows", self.ask(page, "SELECT * FROM orders WHERE customer = 'customer 77'"))
        self.assertEqual(page.evaluate("document.querySelectorAll('#result tbody tr').length"), 7)
        self.assertRegex(page.text("#explain"), r"index customer: \d of \d servers, \d of \d+ regions asked")
        self.assertIn("asked, had rows", page.text("#legend"))
        page.wait(colour_count("hit") + " > 50")
        self.assertGreater(page.evaluate(colour_count("range")), 1000)
        page.evaluate("document.querySelector('#region-list').open = true")
        page.wait("document.querySelector('#region-table').textContent.includes('asked, had rows')")
        self.assertIn("excluded by range of values", page.text("#region-table"))
        # A value that is nowhere: no cell was asked.
        self.assertIn("0 rows", self.ask(page, "SELECT * FROM orders WHERE customer = 'nobody'"))
        self.assertRegex(page.text("#explain"), r": 0 of \d servers")
        page.wait(colour_count("hit") + " === 0")

    def test_rows_come_in_pages(self):
        page = self.open_live()
        self.assertIn("120 rows", self.ask(page, "SELECT id FROM orders ORDER BY id LIMIT 120"))
        self.assertEqual(page.text("#page"), "Rows 1 to 50 of 120")
        page.click("#next")
        page.click("#next")
        page.wait("document.querySelector('#page').textContent === 'Rows 101 to 120 of 120'")
        self.assertEqual(page.text("#result tbody td"), "101")
        self.assertTrue(page.evaluate("document.querySelector('#next').disabled"))

    def test_values_are_shown_as_they_are(self):
        page = self.open_live()
        self.ask(page, "SELECT 9223372036854775807, -9007199254740993, 0.5, '12345678901234567890', NULL, x'00ff', "
                       "'<img src=x onerror=alert(1)>'")
        self.assertEqual(page.evaluate("[...document.querySelectorAll('#result td')].map((cell) => cell.textContent)"),
                         ["9223372036854775807", "-9007199254740993", "0.5", "12345678901234567890", "NULL", "0x00ff",
                          "<img src=x onerror=alert(1)>"])
        self.assertEqual(page.evaluate("document.images.length"), 0)

    def test_error_of_the_server_is_shown(self):
        page = self.open_live()
        self.assertEqual(self.ask(page, "SELECT absent FROM orders"), "failed")
        self.assertEqual(page.text("#problem"), "Bad Request (400)no such column: absent")
        # It fails after many rows.
        self.ask(page, "WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c WHERE x < 9000) SELECT CASE WHEN "
                 "x = 9000 THEN abs(-9223372036854775807 - 1) ELSE x END FROM c")
        page.wait("document.querySelector('#problem').textContent.includes('integer overflow')")
        self.ask(page, "SELECT 1")
        self.assertTrue(page.evaluate("document.querySelector('#problem').hidden"))

    def test_statement_is_cancelled(self):
        page = self.open_live()
        page.evaluate("document.querySelector('#sql').select()")
        page.evaluate("document.querySelector('#sql').focus()")
        page.type("WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c")
        page.click("#run")
        page.click("#cancel")
        page.wait("document.querySelector('#outcome').textContent === 'cancelled'")
        self.assertIn("1 row", self.ask(page, "SELECT 1"))

    def test_change_that_is_cancelled_may_have_been_made(self):
        page = self.open_live()
        page.evaluate("document.querySelector('#sql').select()")
        page.evaluate("document.querySelector('#sql').focus()")
        page.type("INSERT INTO orders(id) WITH RECURSIVE c(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM c)"
                  " SELECT x FROM c WHERE x < 0")
        page.click("#run")
        page.click("#cancel")
        page.wait("document.querySelector('#outcome').textContent === 'outcome unknown'")
        self.assertIn("Read the rows before you repeat", page.text("#problem"))

    def test_history_is_kept_in_the_browser(self):
        page = self.open_live()
        self.ask(page, "SELECT 'remembered'")
        page.close()
        page = self.open_live()
        page.evaluate("document.querySelector('#history').open = true")
        self.assertEqual(page.text("#statements li"), "SELECT 'remembered'")
        page.click("#statements button")
        self.assertEqual(page.evaluate("document.querySelector('#sql').value"), "SELECT 'remembered'")
        page.click("#forget")
        self.assertEqual(page.evaluate("document.querySelectorAll('#statements li').length"), 0)

    def test_killed_server_is_seen_and_no_answer_changes(self):
        page = self.open_live()
        count = "SELECT count(*), sum(cents) FROM orders"
        self.ask(page, count)
        before = page.text("#result tbody")
        page.click("button[aria-label='Kill rs3']")
        page.wait("document.querySelector('#confirm-dialog').open")
        page.click("#confirm-no")
        page.wait("!document.querySelector('#confirm-dialog').open")
        page.click("button[aria-label='Kill rs3']")
        page.click("#confirm-yes")
        page.wait("document.querySelector('#log').textContent.includes('Server rs3 is dead, it was live.')")
        page.wait("document.querySelector('#server-table').textContent.includes('dead')")
        page.wait("document.querySelector('#log').textContent.includes('moved from rs3 to rs')")
        self.ask(page, count)
        self.assertEqual(page.text("#result tbody"), before)
        page.click("button[aria-label='Resume rs3']")
        page.click("#confirm-yes")
        page.wait("document.querySelector('#log').textContent.includes('Server rs3 is live, it was dead.')")

    def test_writes_are_counted(self):
        page = self.open_live()
        self.assertIn("3 rows changed", self.ask(page, "INSERT INTO orders(id, customer) VALUES (100001, 'x'), (100002, 'y'), "
                                                       "(100003, 'z')"))
        page.wait("/^[1-9]\\d* writes in the last 10 seconds, [\\d.]+ ms a batch/.test(document.querySelector('#work').textContent)")
        self.ask(page, "DELETE FROM orders WHERE id > 100000")
        self.assertIn("3 rows changed", page.text("#outcome"))

    def test_region_is_chosen_moved_and_split(self):
        page = self.open_live()
        regions = "Number(/with (\\d+) regions/.exec(document.querySelector('#cells-summary').textContent)[1])"
        before = page.evaluate(regions)
        page.wait(colour_count("none") + " > 1000")  # the cells are drawn
        page.click("#cells", at={"x": 8, "y": 28})
        page.wait("document.querySelector('#chosen-text').textContent.startsWith('Region ')")
        region = page.text("#chosen-text").split()[1]
        target = page.evaluate("document.querySelector('#target').value")
        page.click("#move")
        page.click("#confirm-yes")
        page.wait(f"document.querySelector('#log').textContent.includes('Region {region} of table orders moved from ')")
        page.wait(f"document.querySelector('#chosen-text').textContent.includes('on {target},')")
        page.click("#split")
        page.click("#confirm-yes")
        page.wait(f"{regions} === {before + 1}")
        self.assertIn("was split off, from ", page.text("#log"))
        # The cells show sizes, too.
        page.evaluate("document.querySelector('#colour').value = 'size'")
        page.evaluate("document.querySelector('#colour').dispatchEvent(new Event('change'))")
        page.wait("document.querySelector('#legend').textContent.includes('fifth')")

    def test_keyboard_alone_reaches_everything(self):
        page = self.open_live()
        # The suggested statement goes, for the test to write its own.
        page.press("Tab")
        self.assertEqual(page.focused(), ("link", "Skip to the query"))
        page.press("Enter")
        page.press("Tab")
        names = []
        for _ in range(60):
            focused = page.focused()
            if focused is None or focused in names and focused[1] == "Skip to the query":
                break
            names.append(focused)
            page.press("Tab")
        roles = [role for role, _ in names]
        for wanted in (("combobox", "Table"), ("combobox", "Colour by")):
            self.assertIn(wanted[0], roles, names)
        text = " ".join(name for _, name in names)
        for wanted in ("Run", "Map of regions", "Pause rs1", "Kill rs1", "Regions as a table", "History"):
            self.assertIn(wanted, text)
        self.assertLess(text.index("Run"), text.index("Map of regions"))
        self.assertLess(text.index("Map of regions"), text.index("Kill rs1"))
        self.assertNotIn("", [name.strip() for _, name in names])

        page.evaluate("document.querySelector('#cells').focus()")
        page.press("ArrowRight")
        page.wait("document.querySelector('#chosen-text').textContent.startsWith('Region ')")
        first = page.text("#chosen-text")
        page.press("ArrowRight")
        page.wait(f"document.querySelector('#chosen-text').textContent !== {first!r}")
        page.press("Home")
        page.wait(f"document.querySelector('#chosen-text').textContent === {first!r}")
        page.press("End")
        page.wait("document.querySelector('#chosen-text').textContent.includes('rs4')")

        # A dialog takes the focus, Escape leaves it, and the focus returns.
        page.evaluate("""document.querySelector('button[aria-label="Pause rs2"]').focus()""")
        page.press("Enter")
        page.wait("document.querySelector('#confirm-dialog').open")
        self.assertEqual(page.focused(), ("button", "Leave it"))
        page.press("Escape")
        page.wait("!document.querySelector('#confirm-dialog').open")
        self.assertEqual(page.focused(), ("button", "Pause rs2"))
        page.press("Enter")
        page.press("Tab")
        self.assertEqual(page.focused(), ("button", "Pause"))
        page.press("Enter")
        page.wait("document.querySelector('#log').textContent.includes('Server rs2 is paused')")
        page.wait("""document.querySelector('button[aria-label="Resume rs2"]')""")
        page.evaluate("""document.querySelector('button[aria-label="Resume rs2"]').focus()""")
        page.press(" ")
        page.press("Tab")
        page.press(" ")
        page.wait("document.querySelector('#log').textContent.includes('Server rs2 is live')")

    def test_names_are_completed(self):
        page = self.open_live()
        page.evaluate("document.querySelector('#sql').select()")
        page.evaluate("document.querySelector('#sql').focus()")
        page.type("SELECT id FROM ord")
        page.wait("document.querySelector('#names li')?.textContent === 'orderstable'")
        page.press("ArrowDown")
        self.assertEqual(page.evaluate("document.querySelector('#sql').getAttribute('aria-activedescendant')"), "name-0")
        page.press("Enter")
        page.type(" WHERE cu")
        page.press(" ", chromium.CONTROL)
        page.press("Tab")
        page.type(" = 'customer 77'")
        self.assertEqual(page.evaluate("document.querySelector('#sql').value"),
                         "SELECT id FROM orders WHERE customer = 'customer 77'")
        page.type(" AND c")
        page.wait("!document.querySelector('#names').hidden")
        page.press("Escape")
        page.wait("document.querySelector('#names').hidden")
        self.assertEqual(page.text("#names-status"), "")

    def test_text_has_contrast_in_light_and_dark(self):
        page = self.open_live()
        self.ask(page, "SELECT *, NULL FROM orders WHERE customer = 'customer 77'")
        backgrounds = set()
        for scheme in ("light", "dark"):
            page.prefer(prefers_color_scheme=scheme)
            backgrounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
            self.assertEqual(page.evaluate(CONTRAST), [], scheme)
            page.wait(colour_count("hit") + " > 50")  # drawn again, in the colours of the scheme
        self.assertEqual(len(backgrounds), 2)

    def test_motion_is_reduced(self):
        page = self.open_live()
        self.ask(page, "SELECT * FROM orders WHERE customer = 'customer 77'")
        page.wait("document.querySelector('.bar span')")
        duration = "getComputedStyle(document.querySelector('.bar span')).transitionDuration"
        page.prefer(prefers_reduced_motion="no-preference")
        self.assertEqual(page.evaluate(duration), "0.3s")
        page.prefer(prefers_reduced_motion="reduce")
        self.assertEqual(page.evaluate(duration), "0s")

    def test_screen_reader_finds_roles_and_names(self):
        page = self.open_live()
        self.ask(page, "SELECT id, customer FROM orders WHERE customer = 'customer 77'")
        nodes = page.nodes()
        found = {(node["role"]["value"], node["name"]["value"]) for node in nodes if "name" in node}
        for wanted in (("heading", "What the filters save"), ("heading", "Query"), ("heading", "Servers and regions"),
                       ("heading", "What happens"), ("button", "Run"), ("button", "Cancel"), ("columnheader", "customer"),
                       ("table", "Rows of the answer"), ("table", "Servers"), ("rowheader", "rs1"),
                       ("application", "Map of regions, a column for each server"), ("list", "Legend"),
                       ("log", "What happened, latest first")):
            self.assertIn(wanted, found)
        self.assertTrue(any(role == "textbox" and name.startswith("SQL statement") for role, name in found))
        interactive = {"button", "textbox", "combobox", "link", "application", "searchbox", "MenuListPopup"}
        unnamed = [node for node in nodes if node["role"]["value"] in interactive - {"MenuListPopup"}
                   and not node["name"]["value"].strip()]
        self.assertEqual(unnamed, [])
        described = [node.get("description", {}).get("value", "") for node in nodes
                     if node["role"]["value"] == "application"]
        self.assertRegex(described[0], r"4 servers with \d+ regions: ")

    def test_tabs_share_one_stream_of_events(self):
        first = self.open_live()
        second = self.open_live()
        with urllib.request.urlopen(self.shop.url + "/metrics") as answer:
            self.assertIn("\ntamis_event_streams 1\n", answer.read().decode())
        self.ask(second, "SELECT 1")
        for page in (first, second):
            page.wait("document.querySelectorAll('#server-table tbody tr').length === 4")
        first.close()
        # The other tab takes the stream over; it still sees what changed meanwhile.
        second.evaluate("document.querySelector('#saved-sentence').textContent = ''")
        self.ask(second, "SELECT * FROM orders WHERE customer = 'customer 78'")
        second.wait("document.querySelector('#saved-sentence').textContent.includes('saved')")

    def test_many_regions_are_drawn(self):
        page = self.open_live()
        page.evaluate("""import('/console/cells.js').then(({ Cells }) => {
            const canvas = document.createElement('canvas');
            canvas.id = 'many';
            document.querySelector('#live').append(canvas);
            const cells = new Cells(canvas, () => {});
            const columns = Array.from({ length: 8 }, (_, i) => ({ name: `s${i}`, state: 'live',
              regions: Array.from({ length: 12500 }, (_, j) => ({ id: `${i}.${j}` })) }));
            cells.show(columns, ({ id }) => [id.endsWith('7') ? 'hit' : 'filter']);
        })""")
        # A cell is a pixel at least: none is lost.
        page.wait(colour_count("hit", "#many") + " >= 10000")
        self.assertGreaterEqual(page.evaluate(colour_count("filter", "#many")), 90000)


class TokenTest(unittest.TestCase):
    def test_page_asks_for_the_token_and_keeps_it_in_the_tab(self):
        browser = chromium.Browser()
        self.addCleanup(browser.close)
        shop = ServedShop(TAMIS)
        self.addCleanup(shop.close)
        shop.stop()
        with open(os.path.join(shop.directory.name, "token"), "w", encoding="utf-8") as file:
            file.write("0123456789abcdef\n")
        shop.serve("--token-file", "token")
        page = browser.open(shop.url + "/")
        page.wait("document.querySelector('#token-dialog').open")
        self.assertEqual(page.focused(), ("textbox", "Token"))
        page.type("wrong, and longer than 16")
        page.press("Enter")
        page.wait("document.querySelector('#token-problem').textContent === 'The server refused this token.'")
        page.press("Escape")
        page.wait("document.querySelector('#token-dialog').open")
        page.type("0123456789abcdef")
        page.press("Enter")
        page.wait("document.querySelector('#connection').textContent.startsWith('live, reading only')")
        self.assertEqual(page.evaluate("Object.values(sessionStorage)"), ["0123456789abcdef"])
        self.assertEqual(page.evaluate("JSON.stringify(localStorage)"), "{}")
        self.assertEqual(page.evaluate("document.cookie"), "")
        # No operations are offered where the server does not permit them.
        self.assertFalse(page.evaluate("[...document.querySelectorAll('#server-table button')].some((b) => b.checkVisibility())"))
        # Another tab is given what happens by this one, and not the token.
        other = browser.open(shop.url + "/")
        other.wait("document.querySelector('#connection').textContent.startsWith('live') && document.querySelector('#sql').value")
        other.click("#run")
        other.wait("document.querySelector('#token-dialog').open")

        # A server that stops ends the stream cleanly, and the page says so.
        self.assertEqual(shop.stop(), 0)
        page.wait("document.querySelector('#connection').textContent.startsWith('not connected')")
        # It finds the server that is there later.
        shop.serve("--token-file", "token", listen=shop.url.removeprefix("http://"))
        page.wait("document.querySelector('#connection').textContent.startsWith('live')")
        self.assertEqual([text for text in page.complaints() if not text.startswith("Failed to load resource")], [])


if __name__ == "__main__":
    if chromium.path() is None:
        sys.exit("the test needs Debian's chromium (packages/test.txt)")
    unittest.main()
