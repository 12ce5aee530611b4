"""A headless Chromium, driven by the DevTools protocol over a pipe.

Nothing here sleeps: `Page.wait` returns when a condition of the page holds, and fails after PATIENCE seconds.
"""

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import threading

PATIENCE = 60
# The parts of a key event: code, number, and the text that the key writes.
KEYS = {"Tab": ("Tab", 9, ""), "Enter": ("Enter", 13, "\r"), "Escape": ("Escape", 27, ""), " ": ("Space", 32, " "),
        "ArrowUp": ("ArrowUp", 38, ""), "ArrowDown": ("ArrowDown", 40, ""), "ArrowLeft": ("ArrowLeft", 37, ""),
        "ArrowRight": ("ArrowRight", 39, ""), "Home": ("Home", 36, ""), "End": ("End", 35, "")}
CONTROL, SHIFT = 2, 8


def path():
    """The browser; None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


class Browser:
    def __init__(self):
        self.directory = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        # The pipes must not be among the numbers 3 and 4, which the browser expects, before they are put there.
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()
        command = (f"exec 3<&{to_read} 4>&{to_write}; exec \"$@\"" if {to_read, to_write}.isdisjoint({3, 4}) else
                   f"exec 8<&{to_read} 9>&{to_write}; exec 3<&8 4>&9 8<&- 9>&-; exec \"$@\"")
        self.process = subprocess.Popen(
            ["bash", "-c", command, "bash", path(), "--headless=new", "--no-sandbox", "--disable-gpu",
             "--disable-dev-shm-usage", "--no-first-run", "--hide-scrollbars", "--disable-lcd-text", "--force-device-scale-factor=1",
             "--remote-debugging-pipe", f"--user-data-dir={self.directory.name}", "about:blank"],
            pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.numbers = itertools.count(1)
        self.arrived = threading.Condition()
        self.answers = {}
        self.events = []
        self.has_ended = False
        threading.Thread(target=self._read, daemon=True).start()

    def close(self):
        self.process.terminate()
        self.process.wait()
        os.close(self.to_browser)
        self.directory.cleanup()

    def _read(self):
        rest = b""
        while part := os.read(self.from_browser, 1 << 16):
            *messages, rest = (rest + part).split(b"\0")
            with self.arrived:
                for message in map(json.loads, messages):
                    if "id" in message:
                        self.answers[message["id"]] = message
                    else:
                        self.events.append(message)
                self.arrived.notify_all()
        os.close(self.from_browser)
        with self.arrived:
            self.has_ended = True
            self.arrived.notify_all()

    def call(self, method, session=None, **parameters):
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        with self.arrived:
            if not self.arrived.wait_for(lambda: number in self.answers or self.has_ended, 2 * PATIENCE):
                raise TimeoutError(f"the browser does not answer {method}")
            if number not in self.answers:
                raise ConnectionError("the browser has ended")
            answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, url, width=1280, height=900):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, target, session)
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        for domain in ("Page", "Runtime", "Log", "Accessibility"):
            page.call(f"{domain}.enable")
        page.go(url)
        return page


class Page:
    def __init__(self, browser, target, session):
        self.browser, self.target, self.session = browser, target, session

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def close(self):
        """Closes the page, unless it is closed already."""
        if self.target:
            self.browser.call("Target.closeTarget", targetId=self.target)
        self.target = None

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def evaluate(self, expression):
        """The value of a JavaScript expression; of a promise, what it comes to."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(f"{expression}: {details.get('exception', {}).get('description', details['text'])}")
        return result["result"].get("value")

    def wait(self, condition):
        """Returns the value of the JavaScript expression once it is true."""
        try:
            return self.evaluate(f"""new Promise((resolve, reject) => {{
                const end = performance.now() + {1000 * PATIENCE};
                const look = () => {{
                  let value = false;
                  try {{ value = ({condition}); }} catch (error) {{ if (performance.now() > end) return reject(error); }}
                  if (value) return resolve(value);
                  if (performance.now() > end) return reject(new Error('it did not become true'));
                  setTimeout(look, 10);
                }};
                look();
            }})""")
        except RuntimeError as error:
            if "navigated" in str(error) or "destroyed" in str(error):
                return self.wait(condition)
            raise

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def click(self, selector, at=None):
        """Clicks the middle of the element, or the point `at` in it, as a mouse does."""
        box = self.wait(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{ block: 'center' }});
            const box = element.getBoundingClientRect();
            return box.width > 0 && !element.disabled && [box.x, box.y, box.width, box.height]; }})()""")
        x, y = (box[0] + at["x"], box[1] + at["y"]) if at else (box[0] + box[2] / 2, box[1] + box[3] / 2)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key, modifiers=0):
        code, number, text = KEYS[key]
        event = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
        if text and not modifiers:
            event["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **event)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def focused(self):
        """The name of the element that has the focus, as the browser tells a screen reader, and its role."""
        for node in self.nodes():
            properties = {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
            if properties.get("focused") and node["role"]["value"] != "RootWebArea":
                return node["role"]["value"], node["name"]["value"]
        return None

    def nodes(self):
        """The nodes of the accessibility tree that a screen reader sees."""
        return [node for node in self.call("Accessibility.getFullAXTree")["nodes"] if not node.get("ignored")]

    def prefer(self, **features):
        """prefer(prefers_color_scheme="dark")"""
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()])

    def screenshot(self, **clip):
        parameters = {"clip": {"scale": 1, **clip}} if clip else {}
        return base64.b64decode(self.call("Page.captureScreenshot", format="png", **parameters)["data"])

    def complaints(self):
        """What the browser complained of on this page: exceptions, refused loads, violations of the policy."""
        with self.browser.arrived:
            events = [event for event in self.browser.events if event.get("sessionId") == self.session]
        texts = []
        for event in events:
            if event["method"] == "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                texts.append(details.get("exception", {}).get("description", details["text"]))
            elif event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] in ("error", "warning"):
                texts.append(event["params"]["entry"]["text"])
        return texts
