# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven through chromedriver's WebDriver protocol with nothing but Python's library.

    with Browser(folder) as browser:
        browser.open("file:///a/page.html")
        browser.run("return document.title")
"""
import base64
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

NAMES = ("chromium", "chromium-browser", "google-chrome")


def find():
    """(browser, driver), or what is missing as a sentence."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    driver = shutil.which("chromedriver")
    if browser and driver:
        return browser, driver
    return "no " + ("chromedriver" if browser else "chromium") + " here (scripts/install-deps installs it)"


class Browser:
    def __init__(self, downloads, width=1400, height=1000):
        self.downloads = pathlib.Path(downloads)
        self.size = width, height

    def __enter__(self):
        binary, driver = find()
        self.profile = tempfile.mkdtemp(prefix="quarry-report-")
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = next(m.group(1) for m in (re.search(r"on port (\d+)\.", line) for line in self.driver.stdout)
                    if m and m.group(1) != "0")
        self.base = f"http://127.0.0.1:{port}"
        # Tests may run as root and where /dev/shm is small: no sandbox, no shared memory there.
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
                     "--no-first-run", "--force-device-scale-factor=1", "--disable-background-networking",
                     f"--window-size={self.size[0]},{self.size[1]}", f"--user-data-dir={self.profile}"]
        wanted = {"browserName": "chrome", "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
                  "goog:chromeOptions": {"binary": binary, "args": arguments,
                                         "prefs": {"download.default_directory": str(self.downloads)}}}
        try:
            answer = self.ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self.stop()
            raise
        self.base += "/session/" + answer["sessionId"]
        self.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads))
        return self

    def __exit__(self, *_):
        try:
            self.ask("DELETE", "")
        except OSError:
            pass
        self.stop()

    def stop(self):
        self.driver.terminate()
        self.driver.wait(20)
        self.driver.stdout.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def ask(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def open(self, address):
        self.ask("POST", "/url", {"url": address})

    def run(self, script, *arguments):
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments, seconds=30):
        """Until the script returns something true."""
        end = time.monotonic() + seconds
        while not (value := self.run(script, *arguments)):
            if time.monotonic() > end:
                raise AssertionError(f"still not after {seconds} s: {script}")
            time.sleep(0.1)
        return value

    def element(self, selector):
        return next(iter(self.ask("POST", "/element", {"using": "css selector", "value": selector}).values()))

    def click(self, selector):
        """As a person does: scrolled to, and with whatever lies over it in the way."""
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        self.ask("POST", f"/element/{self.element(selector)}/click", {})

    def press(self, selector, key):
        """A key while the element has the focus."""
        self.ask("POST", f"/element/{self.element(selector)}/value", {"text": key})

    def point_at(self, selector, x, y):
        """Moves the mouse to a place inside the element, counted from its middle."""
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        origin = {"element-6066-11e4-a52e-4f735466cecf": self.element(selector)}
        move = {"type": "pointerMove", "duration": 0, "x": x, "y": y, "origin": origin}
        self.ask("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [move]}]})

    def devtools(self, command, **parameters):
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def prefer(self, scheme):
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def resize(self, width, height, mobile=False):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if mobile else 1,
                      mobile=mobile)

    def log(self, kind):
        return self.ask("POST", "/se/log", {"type": kind})

    def requests(self):
        """Addresses that the browser asked for since the last call."""
        messages = (json.loads(entry["message"])["message"] for entry in self.log("performance"))
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]

    def screenshot(self, file, whole=False):
        if whole:
            size = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 15000), "scale": 1}
            picture = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
        else:
            picture = self.ask("GET", "/screenshot")
        pathlib.Path(file).write_bytes(base64.b64decode(picture))
