# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by Selenium.

    with Browser(folder) as browser:
        browser.open("file:///a/page.html")
        browser.run("return document.title")
"""
import base64
import json
import pathlib
import shutil

from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

NAMES = ("chromium", "chromium-browser", "google-chrome")
# Tests may run as root, and where /dev/shm is small: no sandbox, no shared memory there.
ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
             "--hide-scrollbars", "--no-first-run", "--force-device-scale-factor=1",
             "--disable-background-networking", "--window-size=1400,1000")


def find():
    """Returns (browser, driver), or a sentence that names what is missing."""
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    driver = shutil.which("chromedriver")
    if browser and driver:
        return browser, driver
    missing = "chromedriver" if browser else "chromium"
    return f"{missing} is not installed (scripts/install-deps browser)"


class Browser:
    def __init__(self, downloads):
        self.downloads = str(pathlib.Path(downloads))

    def __enter__(self):
        binary, driver = find()
        options = webdriver.ChromeOptions()
        options.binary_location = binary
        for argument in ARGUMENTS:
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(driver), options=options)
        self.driver.set_script_timeout(120)
        self.devtools("Browser.setDownloadBehavior", behavior="allow", downloadPath=self.downloads)
        return self

    def __exit__(self, *_):
        self.driver.quit()

    def open(self, address):
        self.driver.get(address)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, script, *arguments, seconds=30):
        """Waits until the script returns a true value, and returns it."""
        return WebDriverWait(self.driver, seconds, 0.1).until(
            lambda _: self.run(script, *arguments), f"not true after {seconds} s: {script}")

    def element(self, selector):
        """Returns the element, scrolled to the middle of the window."""
        found = self.driver.find_element(By.CSS_SELECTOR, selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", found)
        return found

    def click(self, selector):
        self.element(selector).click()

    def press(self, selector, key):
        """Sends a key to the element."""
        self.element(selector).send_keys(key)

    def point_at(self, selector, x, y):
        """Moves the pointer to a position in the element, relative to its centre."""
        ActionChains(self.driver, duration=0).move_to_element_with_offset(
            self.element(selector), x, y).perform()

    def devtools(self, command, **parameters):
        return self.driver.execute_cdp_cmd(command, parameters)

    def prefer(self, scheme):
        self.devtools("Emulation.setEmulatedMedia",
                      features=[{"name": "prefers-color-scheme", "value": scheme}])

    def resize(self, width, height, mobile=False):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=2 if mobile else 1, mobile=mobile)

    def log(self, kind):
        return self.driver.get_log(kind)

    def requests(self):
        """Returns the addresses that the browser requested since the last call."""
        messages = (json.loads(entry["message"])["message"] for entry in self.log("performance"))
        return [m["params"]["request"]["url"] for m in messages
                if m["method"] == "Network.requestWillBeSent"]

    def screenshot(self, file, whole=False):
        """Writes a PNG of the window, or of the whole page."""
        clip = {}
        if whole:
            size = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
            area = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 15000)}
            clip = {"captureBeyondViewport": True, "clip": {**area, "scale": 1}}
        picture = self.devtools("Page.captureScreenshot", format="png", **clip)["data"]
        pathlib.Path(file).write_bytes(base64.b64decode(picture))
