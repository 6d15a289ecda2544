"""A page in headless Chromium, driven over the pipe of its own debugging protocol: no port, no driver, no library.

    with browser.Browser() as chromium:
        page = chromium.open("/tmp/day.html", width=1200)
        page.value("document.title")
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

from tests.harness import cases

PROGRAM = "/usr/bin/chromium"
# Nothing of its own may ask the network: what a page asks for is then all there is.
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars",
           "--remote-debugging-pipe"]


def need_browser():
    """Skips (in CI: fails) unless Chromium is there."""
    cases.need(os.path.exists(PROGRAM), "opening pages needs chromium")


class Browser:
    # Patient: a machine under load may leave it waiting, which is no fault of the page.
    def __init__(self, timeout_s=180):
        self._timeout_s = timeout_s
        self._page = None

    def __enter__(self):
        self._folder = tempfile.mkdtemp(prefix="blktape-browser.")
        from_us, self._to = os.pipe()
        self._from, to_us = os.pipe()

        def place():
            # It reads from descriptor 3 and writes to 4.
            os.dup2(from_us, 13)
            os.dup2(to_us, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        # close_fds would close what preexec_fn makes.
        self._process = subprocess.Popen([PROGRAM, *OPTIONS, "--user-data-dir=" + self._folder, "about:blank"], preexec_fn=place,
                                         close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                         stderr=subprocess.DEVNULL, env=dict(os.environ, HOME=self._folder))
        os.close(from_us)
        os.close(to_us)
        self._rest = b""
        self._number = 0
        self.events = []
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
        except (OSError, TimeoutError, EOFError):
            pass
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _read(self, end):
        while b"\0" not in self._rest:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._from], [], [], left)[0]:
                raise TimeoutError("chromium does not answer")
            chunk = os.read(self._from, 1 << 20)
            if not chunk:
                raise EOFError("chromium ended")
            self._rest += chunk
        message, self._rest = self._rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **params):
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data):]
        end = time.monotonic() + self._timeout_s
        while True:
            answer = self._read(end)
            if answer.get("id") != self._number:
                self.events.append(answer)
                continue
            if "error" in answer:
                raise OSError("%s: %s" % (method, answer["error"]))
            return answer["result"]

    def open(self, path, width=1200, height=900, dark=False, scripts=True):
        """The page before is closed: one at a time."""
        if self._page is not None:
            self._page.close()
        self._page = Page(self, path, width, height, dark, scripts)
        return self._page


class Page:
    """One tab. `errors`: what its console said that is no note, and exceptions; `requests`: what it asked for but itself."""

    def __init__(self, browser, path, width, height, dark, scripts):
        self._browser = browser
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)["sessionId"]
        self._url = "file://" + os.path.abspath(path)
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        if not scripts:
            self.call("Emulation.setScriptExecutionDisabled", value=True)
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        begin = time.monotonic()
        self.call("Page.navigate", url=self._url)
        self._until("document.readyState === 'complete'")
        if scripts:
            self._until("document.documentElement.dataset.drawn !== undefined")
        self.opened_s = time.monotonic() - begin

    def close(self):
        self._browser.call("Target.closeTarget", targetId=self._target)

    def call(self, method, **params):
        return self._browser.call(method, session=self._session, **params)

    def value(self, script):
        # As a tool of the browser, also where the page itself may run no scripts.
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError("%s: %s" % (script, result["exceptionDetails"]))
        return result["result"].get("value")

    def _until(self, condition, timeout_s=180):
        end = time.monotonic() + timeout_s
        while not self.value(condition):
            if time.monotonic() > end:
                raise AssertionError("never: %s; %s" % (condition, self.errors()))
            time.sleep(0.02)

    def _events(self, method):
        self.value("0")  # whatever was on its way is there now
        return [event["params"] for event in self._browser.events
                if event.get("method") == method and event.get("sessionId") == self._session]

    def errors(self):
        errors = [str(event["exceptionDetails"]) for event in self._events("Runtime.exceptionThrown")]
        errors += [str(event["args"]) for event in self._events("Runtime.consoleAPICalled") if event["type"] in ("error", "warning", "assert")]
        errors += [str(event["entry"]) for event in self._events("Log.entryAdded") if event["entry"]["level"] in ("error", "warning")]
        return errors

    def requests(self):
        urls = [event["request"]["url"] for event in self._events("Network.requestWillBeSent")]
        return [url for url in urls if url != self._url and url != "about:blank" and not url.startswith("data:")]

    def data(self):
        """What its figures are drawn from."""
        return json.loads(self.value("document.getElementById('data').textContent"))

    def assert_sound(self, test):
        """No error, no request, every figure drawn and its table there."""
        test.assertEqual(self.errors(), [])
        test.assertEqual(self.requests(), [])
        figures = self.data()["figures"]
        drawn = self.value("document.documentElement.dataset.drawn")
        test.assertEqual(int(drawn), len(figures))
        for figure in figures:
            marks = self.value("""(() => {
              const box = document.getElementById('chart-%s'), canvas = box.querySelector('canvas');
              if (!canvas) return box.querySelectorAll('svg path, svg rect').length;
              const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
              let marks = 0;
              for (let i = 3; i < pixels.length; i += 4) if (pixels[i]) marks++;
              return marks;
            })()""" % figure["id"])
            test.assertGreater(marks, 3, figure["id"])
            test.assertTrue(self.value("document.getElementById('chart-%s').getAttribute('aria-label').length > 10" % figure["id"]))
            test.assertTrue(self.value("document.getElementById('table-%s').querySelector('table tbody tr') !== null" % figure["table"]))

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if len(key) == 1 and kind == "keyDown" else "")

    def screenshot(self, path, whole=True):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])
