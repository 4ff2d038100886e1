"""Chromium over its DevTools pipe (file descriptors 3 and 4): standard library only, no port."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


# Height of a page in pixels above which it is not drawn as a whole.
TALL = 100_000


class Closed(Exception):
    """Raised when the browser process has ended."""


class Browser:
    """A headless browser without network access."""

    def __init__(self, program):
        self.profile = tempfile.mkdtemp(prefix="pe-bench-browser-")
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def pipes():
            # An end of a pipe may already have descriptor 3 or 4, so move both first.
            first, second = os.dup(to_browser), os.dup(from_browser)
            os.dup2(first, 3)
            os.dup2(second, 4)

        self.log = open(os.path.join(self.profile, "chromium.log"), "wb")
        self.process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--remote-debugging-pipe",
                f"--user-data-dir={self.profile}",
                # No host name resolves, so every request of a page fails.
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-default-apps",
                "--disable-extensions",
                "--disable-sync",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--force-color-profile=srgb",
                "--hide-scrollbars",
                # The sandbox needs user namespaces, which containers and root lack.
                "--no-sandbox",
                "about:blank",
            ],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            preexec_fn=pipes,
            close_fds=False,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._rest = b""
        self._id = 0

    def _message(self, timeout):
        """Returns the next message; None after the timeout."""
        end = time.monotonic() + timeout
        while b"\0" not in self._rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                return None
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise Closed(f"the browser ended; its log is {self.log.name}")
            self._rest += piece
        text, self._rest = self._rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, parameters=None, session=None, on_event=None, timeout=60):
        """Sends a command and returns its result; events received meanwhile go to `on_event`."""
        self._id += 1
        order = {"id": self._id, "method": method, "params": parameters or {}}
        if session:
            order["sessionId"] = session
        text = json.dumps(order).encode() + b"\0"
        while text:
            text = text[os.write(self._write, text) :]
        end = time.monotonic() + timeout
        while True:
            message = self._message(max(0.0, end - time.monotonic()))
            if message is None:
                raise TimeoutError(f"{method}: no answer within {timeout} s")
            if message.get("id") == self._id:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error'].get('message')}")
                return message["result"]
            if "method" in message and on_event:
                on_event(message)

    def close(self):
        try:
            self.call("Browser.close", timeout=10)
            self.process.wait(10)
        except Exception:  # whatever it was, the process must not stay
            self.process.kill()
            self.process.wait()
        self.log.close()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self.profile, ignore_errors=True)


class Page:
    """One tab, with its requests and console messages."""

    def __init__(self, browser, width, height, phone, dark):
        self.browser = browser
        self.requests, self.complaints, self.loaded = [], [], False
        target = browser.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        self.target = target
        attached = browser.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        self.session = attached["sessionId"]
        for domain in ["Page", "Runtime", "Network", "Log"]:
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone},
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", {"features": scheme})

    def _event(self, message):
        if message.get("sessionId") != self.session:
            return
        method, what = message["method"], message["params"]
        if method == "Network.requestWillBeSent":
            self.requests.append(what["request"]["url"])
        elif method == "Network.webSocketCreated":
            self.requests.append(what["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Runtime.exceptionThrown":
            details = what["exceptionDetails"]
            text = details.get("exception", {}).get("description") or details["text"]
            self.complaints.append(f"exception: {text}")
        elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
            words = [str(a.get("value", a.get("description"))) for a in what["args"]]
            self.complaints.append(f"console {what['type']}: {' '.join(words)}")
        elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
            self.complaints.append(f"{what['entry']['level']}: {what['entry']['text']}")
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append(f"dialog: {what['message']}")
            raise RuntimeError(f"the page opened a dialog: {what['message']}")

    def call(self, method, parameters=None, timeout=60):
        return self.browser.call(method, parameters, self.session, self._event, timeout)

    def open(self, url, timeout=30):
        """Loads a page and returns the seconds that it took."""
        start = time.monotonic()
        self.call("Page.navigate", {"url": url})
        while not self.loaded:
            if time.monotonic() - start > timeout:
                raise TimeoutError(f"{url} did not load within {timeout} s")
            self.run("0")
            time.sleep(0.02)
        return time.monotonic() - start

    def run(self, expression):
        """Returns the value of a JavaScript expression; promises are awaited."""
        result = self.call(
            "Runtime.evaluate",
            {"expression": expression, "awaitPromise": True, "returnByValue": True},
        )
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def print_on(self, width):
        """Shows the page as it would be printed on paper of this width."""
        self.call("Emulation.setEmulatedMedia", {"media": "print"})
        metrics = {"width": width, "height": width, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", metrics)

    def screenshots(self, stem, piece=2400, most=8):
        """Saves the whole page as images of limited height, `<stem>-1.png` and so on; of a very tall page only the window,
        because the browser would lay out and draw all of it."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        if size["height"] > TALL:
            data = self.call("Page.captureScreenshot", {"format": "png"})["data"]
            with open(f"{stem}-1.png", "wb") as file:
                file.write(base64.b64decode(data))
            return
        for index in range(most):
            top = index * piece
            if top >= size["height"]:
                break
            height = min(piece, size["height"] - top)
            clip = {"x": 0, "y": top, "width": size["width"], "height": height, "scale": 1}
            options = {"format": "png", "captureBeyondViewport": True, "clip": clip}
            data = self.call("Page.captureScreenshot", options)["data"]
            with open(f"{stem}-{index + 1}.png", "wb") as file:
                file.write(base64.b64decode(data))

    def close(self):
        self.browser.call("Target.closeTarget", {"targetId": self.target})
