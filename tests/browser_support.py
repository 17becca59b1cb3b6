"""A real browser for tests, where there is one."""

from __future__ import annotations

import importlib.util
import shutil
from contextlib import contextmanager

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
MISSING = [
    name
    for name, found in {
        "Chromium": CHROMIUM,
        "chromedriver": DRIVER,
        "the Python package selenium": importlib.util.find_spec("selenium"),
    }.items()
    if not found
]

FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
SECONDS = 30


@contextmanager
def running(profile):
    """A driver of a browser without windows, which keeps what it writes in the folder ``profile``."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    driver.set_script_timeout(SECONDS)
    driver.get("about:blank")  # in place of a page of the browser's own
    try:
        yield driver
    finally:
        driver.quit()
