#!/usr/bin/env python3
"""Makes the pictures of docs/SERVER.md: the console after some queries, in light and dark, and while a server is dead.

usage: screenshots.py TAMIS DIRECTORY
"""

import os
import sys

import chromium
from palette_png import with_palette
from served_shop import ServedShop

MOST_BYTES = 150_000
WIDTH = 1100


def ask(page, sql):
    page.evaluate("document.querySelector('#sql').select()")
    page.evaluate("document.querySelector('#sql').focus()")
    page.type(sql)
    page.press("Enter", chromium.CONTROL)
    page.wait("!document.querySelector('#run').disabled")


def take(page, directory, name):
    picture = with_palette(page.screenshot())
    if len(picture) > MOST_BYTES:
        sys.exit(f"{name}.png has {len(picture)} bytes, more than {MOST_BYTES}")
    with open(os.path.join(directory, f"{name}.png"), "wb") as file:
        file.write(picture)


def main():
    tamis, directory = sys.argv[1:3]
    os.makedirs(directory, exist_ok=True)
    shop = ServedShop(tamis, "--write")
    browser = chromium.Browser()
    try:
        page = browser.open(shop.url + "/", width=WIDTH, height=1160)
        page.wait("document.querySelector('#connection').textContent.startsWith('live')")
        for number in range(20):
            ask(page, f"SELECT * FROM orders WHERE customer = 'customer {31 * number}'")
        ask(page, "SELECT count(*) FROM orders WHERE cents BETWEEN 10 AND 60")
        ask(page, "SELECT id, customer, cents FROM orders WHERE cents = 77")
        page.wait("document.querySelector('#saved-start').textContent.includes('22 searches')")
        for scheme in ("light", "dark"):
            page.prefer(prefers_color_scheme=scheme)
            page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
            take(page, directory, f"console-{scheme}")
        page.prefer(prefers_color_scheme="light")
        page.click("button[aria-label='Kill rs3']")
        page.click("#confirm-yes")
        page.wait("document.querySelector('#log').textContent.includes('moved from rs3')")
        ask(page, "SELECT id, customer, cents FROM orders WHERE customer = 'customer 400'")
        page.wait("document.querySelector('#server-table').textContent.includes('dead')")
        page.wait("document.querySelector('#saved-start').textContent.includes('23 searches')")
        page.evaluate("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))")
        take(page, directory, "console-kill")
    finally:
        browser.close()
        shop.close()


if __name__ == "__main__":
    main()
