"""Drives a headless Chromium over its debugging pipe: opens the server's page, waits until it has drawn what is asked for, sends the form, and checks the DOM in light and dark.

Only the standard library is used. serve_page.sh starts the server and calls this:

    python3 serve_page.py CHROMIUM URL SCREENSHOT.png
    python3 serve_page.py CHROMIUM URL --crowded

With --crowded the server has ten models with names of 255 bytes, of which the first is not ready: columns, choice and names are checked in windows of 1280 pixels.
"""

import base64
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request


class Browser:
    """Chromium's debugging protocol over file descriptors 3 and 4: JSON documents, each ended by a zero byte."""

    def __init__(self, program, profile):
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()

        def plumb():
            # Through high numbers, so that neither pipe is closed by the other's move.
            os.dup2(to_read, 103), os.dup2(back_write, 104)
            os.dup2(103, 3), os.dup2(104, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe", "--user-data-dir=" + profile, "about:blank"],
            preexec_fn=plumb, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read), os.close(back_write)
        self.n, self.rest, self.events = 0, b"", []

    def read(self):
        while b"\0" not in self.rest:
            part = os.read(self.back, 1 << 16)
            if not part:
                raise SystemExit("Chromium has ended")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def ask(self, method, session=None, **params):
        self.n += 1
        doc = {"id": self.n, "method": method, "params": params}
        if session:
            doc["sessionId"] = session
        os.write(self.to, json.dumps(doc).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.n:
                if "error" in answer:
                    raise SystemExit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)


def main():
    program, url, shot = sys.argv[1:4]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        b = Browser(program, profile)
        try:
            checks = crowded(b, url) if shot == "--crowded" else drive(b, url, shot)
        finally:
            b.process.kill()
            b.process.wait()
    print(f"{checks} checks of the page passed" + ("" if shot == "--crowded" else f"; screenshot {shot}"))


def crowded(b, url):
    target = b.ask("Target.createTarget", url="about:blank")["targetId"]
    session = b.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def js(code):
        return b.ask("Runtime.evaluate", session, expression=code, returnByValue=True)["result"].get("value")

    passed = 0

    def expect(what, code):
        nonlocal passed
        until = time.monotonic() + 20
        while not js(code):
            if time.monotonic() > until:
                raise SystemExit(f"{what}: {code}\n" + js("document.body.innerText"))
            time.sleep(0.1)
        passed += 1

    with urllib.request.urlopen(url + "page/data") as r:
        models = json.load(r)["models"]
    ready = [m["name"] for m in models if any(v["state"] == "READY" for v in m["versions"])]
    assert len(models) == 10 and all(len(m["name"].encode()) == 255 for m in models) and models[0]["name"] not in ready and len(ready) == 9, models
    for scheme in ("light", "dark"):
        b.ask("Emulation.setEmulatedMedia", session, features=[{"name": "prefers-color-scheme", "value": scheme}])
        b.ask("Emulation.setDeviceMetricsOverride", session, width=1280, height=900, deviceScaleFactor=1, mobile=False)
        b.ask("Page.navigate", session, url=url)
        expect("ten models", "document.querySelectorAll('#models tbody button').length === 10")
        expect("the first that is ready", f"document.querySelector('#chosen').textContent === {json.dumps(ready[0])} && !document.querySelector('#send').disabled")
        expect("all columns without scrolling", "(w => w.scrollWidth <= w.clientWidth)(document.querySelector('.wide')) && document.documentElement.scrollWidth <= 1280")
        expect("every heading", "[...document.querySelectorAll('#models th')].every(h => h.scrollWidth <= h.clientWidth && h.getBoundingClientRect().right <= 1280)")
        expect("names that can be told apart, and read whole", "(l => new Set(l.map(b => b.textContent)).size === 10 && l.every(b => b.scrollWidth <= b.clientWidth && new TextEncoder().encode(b.title).length === 255))([...document.querySelectorAll('#models tbody button')])")
        expect("why the first is not ready", "document.querySelector('#models tr.why td').textContent.includes('read')")
    # The reader may choose what is not ready, and gets no form of another model.
    js("document.querySelector('#models tbody button').click()")
    expect("what was chosen", f"document.querySelector('#chosen').textContent === {json.dumps(models[0]['name'])} && document.querySelector('#send').disabled && document.querySelectorAll('#inputs fieldset').length === 0")
    js("document.querySelectorAll('#models tbody button')[5].click()")
    expect("another", f"document.querySelector('#chosen').textContent === {json.dumps(models[5]['name'])} && !document.querySelector('#send').disabled && document.querySelectorAll('#inputs fieldset').length > 0")
    return passed


def drive(b, url, shot):
    target = b.ask("Target.createTarget", url="about:blank")["targetId"]
    session = b.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    ask = lambda method, **params: b.ask(method, session, **params)
    for domain in ("Page", "Runtime", "Log", "Network"):
        ask(domain + ".enable")
    ask("Emulation.setDeviceMetricsOverride", width=1120, height=1000, deviceScaleFactor=1, mobile=False)
    ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])

    def js(code):
        r = ask("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise SystemExit(f"{code}: {r['exceptionDetails']}")
        return r["result"].get("value")

    passed = 0

    def expect(what, code, seconds=20):
        nonlocal passed
        until = time.monotonic() + seconds
        while not js(code):
            if time.monotonic() > until:
                raise SystemExit(f"the page does not show {what}: {code}\n" + js("document.body.innerText"))
            time.sleep(0.1)
        passed += 1

    ask("Page.navigate", url=url)
    with urllib.request.urlopen(url + "page/data") as r:
        name = json.load(r)["models"][0]["name"]
    with urllib.request.urlopen(url + "page/model?" + urllib.parse.urlencode({"name": name})) as r:
        sample = json.load(r).get("sample")
    expect("a ready model", "document.querySelector('#models tbody .good')?.textContent === 'ready'")
    expect("its inputs", "document.querySelectorAll('#inputs fieldset').length > 0")
    expect("values to send", "[...document.querySelectorAll('#inputs textarea')].every(t => t.value.length > 0)")
    if sample:
        expect("the recorded sample", "!document.querySelector('#fill-sample').hidden")
    js("document.querySelector('#send').click()")
    expect("an answer", "document.querySelectorAll('#answer h3').length > 0 && document.querySelector('#answer').innerText.includes('round trip')")
    expect("bars", "document.querySelectorAll('#answer .bars .bar').length > 1")
    expect("both charts", "document.querySelectorAll('#rate path').length === 1 && document.querySelectorAll('#latency path').length === 2")
    expect("the throughput", "[...document.querySelectorAll('#models tbody td:nth-child(9)')].some(td => Number(td.textContent.replace(/[^0-9.]/g, '')) > 0)")
    # A request that cannot be right is refused in words, by the page or by the server.
    js("(window.kept = document.querySelector('#inputs textarea').value, document.querySelector('#inputs textarea').value = '1, 2, x', document.querySelector('#send').click())")
    expect("what is wrong with three values", "document.querySelector('#problem').textContent.includes('expected')")
    js("(document.querySelector('#inputs textarea').value = window.kept, document.querySelector('#send').click())")
    expect("no problem any more", "document.querySelector('#problem').textContent === ''")
    # Charts need a while to say something.
    expect("twenty polls", "(document.querySelector('#rate path')?.getAttribute('d').match(/L/g) ?? []).length >= 20", 60)
    # A chart that has the keyboard keeps it while it is drawn again, and is not drawn again while it is read.
    js("(document.querySelector('#rate svg').focus(), window.drawn = document.activeElement)")
    expect("a chart that is drawn again and keeps the keyboard", "window.drawn !== document.activeElement && document.activeElement.closest('#rate') !== null")
    js("(window.drawn = document.activeElement).dispatchEvent(new KeyboardEvent('keydown', { key: 'End' }))")
    expect("the figures below the mark", "document.querySelector('#rate .tip:not([hidden])')?.textContent.startsWith('now')")
    time.sleep(2.5)
    expect("the chart that is read", "window.drawn === document.activeElement && !document.querySelector('#rate .tip').hidden")
    js("document.activeElement.blur()")
    expect("the chart drawn again", "!window.drawn.isConnected")
    light = js("getComputedStyle(document.body).backgroundColor")
    ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    expect("the dark scheme", f"getComputedStyle(document.body).backgroundColor !== {json.dumps(light)}")
    ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
    # Narrow screens do not scroll sideways.
    ask("Emulation.setDeviceMetricsOverride", width=400, height=900, deviceScaleFactor=1, mobile=True)
    expect("everything within a narrow screen", "document.documentElement.scrollWidth <= 400")
    ask("Emulation.setDeviceMetricsOverride", width=1120, height=1000, deviceScaleFactor=1, mobile=False)
    expect("the answer still", "document.querySelectorAll('#answer .bars').length > 0")
    height = int(js("document.documentElement.scrollHeight"))
    picture = ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": 1120, "height": min(height, 1400), "scale": 1})["data"]
    with open(shot, "wb") as f:
        f.write(base64.b64decode(picture))
    # Errors of scripts, refusals of the content security policy, and requests to anywhere else.
    for e in b.events:
        method, params = e.get("method"), e.get("params", {})
        if method == "Runtime.exceptionThrown":
            raise SystemExit(f"the script failed: {params}")
        if method == "Log.entryAdded" and params["entry"]["level"] == "error":
            raise SystemExit(f"the browser says: {params['entry']['text']}")
        if method == "Network.requestWillBeSent" and not params["request"]["url"].startswith((url, "data:", "about:")):
            raise SystemExit(f"the page asks elsewhere: {params['request']['url']}")
    return passed + 1


main()
