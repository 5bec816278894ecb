"""browser.py: Chromium, driven through a pipe (the DevTools protocol, standard library only).

It runs with a profile of its own that goes when it ends, without a network that it could use: every request that
is not for the page's own file is kept in `requests`. Nothing here sleeps: who waits, waits for a message.
"""
import base64
import json
import os
import shutil
import subprocess
import tempfile

NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable')


def find():
    named = os.environ.get('WEIR_CHROMIUM')
    return named or next((p for p in map(shutil.which, NAMES) if p), None)


class Failed(Exception):
    pass


class Browser:
    def __init__(self, program, width=1600, height=1000):
        self.profile = tempfile.mkdtemp(prefix='weir-page-')
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        # Descriptor 3 is what Chromium reads, 4 what it writes; first above them, so that neither is overwritten.
        def descriptors():
            low, high = os.dup(theirs_in), os.dup(theirs_out)
            low, high = (os.dup(low) if low < 5 else low), (os.dup(high) if high < 5 else high)
            os.dup2(low, 3)
            os.dup2(high, 4)

        self.log = open(os.path.join(self.profile, 'log'), 'wb')
        self.process = subprocess.Popen(
            [program, '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--remote-debugging-pipe', '--no-first-run',
             '--disable-extensions', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-default-apps',
             '--force-device-scale-factor=1', '--hide-scrollbars', f'--user-data-dir={self.profile}/profile', f'--window-size={width},{height}', 'about:blank'],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, close_fds=False, preexec_fn=descriptors,
            env={**os.environ, 'HOME': self.profile, 'XDG_CONFIG_HOME': self.profile, 'XDG_CACHE_HOME': self.profile})
        os.close(theirs_in)
        os.close(theirs_out)
        self.reading, self.writing = os.fdopen(ours_in, 'rb'), ours_out
        self.number, self.session, self.buffer = 0, None, b''
        self.errors, self.requests, self.dialogs, self.loaded = [], [], [], False
        target = next(t for t in self.call('Target.getTargets')['targetInfos'] if t['type'] == 'page')
        self.session = self.call('Target.attachToTarget', targetId=target['targetId'], flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.call(f'{domain}.enable')
        self.size(width, height)
        self.theme('light')

    def receive(self):
        while b'\0' not in self.buffer:
            piece = os.read(self.reading.fileno(), 1 << 16)
            if not piece:
                raise Failed('Chromium ended: ' + open(self.log.name, errors='replace').read()[-2000:])
            self.buffer += piece
        message, self.buffer = self.buffer.split(b'\0', 1)
        return json.loads(message)

    def note(self, message):
        method, params = message.get('method'), message.get('params', {})
        if method == 'Runtime.exceptionThrown':
            details = params['exceptionDetails']
            self.errors.append(details.get('exception', {}).get('description') or details['text'])
        elif method == 'Runtime.consoleAPICalled' and params['type'] in ('error', 'warning', 'assert'):
            self.errors.append('console: ' + ' '.join(str(a.get('value', a.get('description'))) for a in params['args']))
        elif method == 'Log.entryAdded' and params['entry']['level'] in ('error', 'warning'):
            self.errors.append('log: ' + params['entry']['text'])
        elif method == 'Network.requestWillBeSent':
            self.requests.append(params['request']['url'])
        elif method == 'Page.javascriptDialogOpening':
            self.dialogs.append(params['message'])
            self.send('Page.handleJavaScriptDialog', accept=False)  # until then the page stands still
        elif method == 'Page.loadEventFired':
            self.loaded = True

    def send(self, method, **params):
        self.number += 1
        message = {'id': self.number, 'method': method, 'params': params}
        if self.session:
            message['sessionId'] = self.session
        os.write(self.writing, json.dumps(message).encode() + b'\0')
        return self.number

    def call(self, method, **params):
        number = self.send(method, **params)
        while True:
            answer = self.receive()
            if answer.get('id') == number:
                if 'error' in answer:
                    raise Failed(f'{method}: {answer["error"]}')
                return answer['result']
            self.note(answer)

    def size(self, width, height):
        self.call('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def theme(self, scheme):
        self.call('Emulation.setEmulatedMedia', features=[{'name': 'prefers-color-scheme', 'value': scheme}, {'name': 'prefers-reduced-motion', 'value': 'reduce'}])

    def open(self, path):
        self.errors, self.requests, self.dialogs, self.loaded = [], [], [], False
        self.call('Page.navigate', url='file://' + os.path.abspath(path))
        while not self.loaded:
            self.note(self.receive())

    def js(self, expression):
        """The value of an expression, or of the promise that it is; what it throws is an error here."""
        answer = self.call('Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True)
        if 'exceptionDetails' in answer:
            details = answer['exceptionDetails']
            raise Failed(f'{expression[:200]}: {details.get("exception", {}).get("description", details["text"])}')
        return answer['result'].get('value')

    def key(self, key, shift=False):
        code = {'Escape': 27, 'Enter': 13, 'ArrowLeft': 37, 'ArrowUp': 38, 'ArrowRight': 39, 'ArrowDown': 40, 'Home': 36, 'End': 35, 'Tab': 9, 'Backspace': 8, ' ': 32}.get(key, 0)
        text = {'text': key} if len(key) == 1 else {'text': '\r'} if key == 'Enter' else {}
        for kind in ('keyDown', 'keyUp'):
            self.call('Input.dispatchKeyEvent', type=kind, key=key, windowsVirtualKeyCode=code, modifiers=8 if shift else 0, **(text if kind == 'keyDown' else {}))

    def mouse(self, kind, x, y, **more):
        self.call('Input.dispatchMouseEvent', type=kind, x=x, y=y, **more)

    def click(self, x, y):
        self.drag([(x, y)])

    def drag(self, points):
        self.mouse('mouseMoved', *points[0])
        self.mouse('mousePressed', *points[0], button='left', buttons=1, clickCount=1)
        for p in points[1:]:
            self.mouse('mouseMoved', *p, button='left', buttons=1)
        self.mouse('mouseReleased', *points[-1], button='left', clickCount=1)

    def picture(self, path, whole=False):
        data = self.call('Page.captureScreenshot', format='png', captureBeyondViewport=whole)['data']
        with open(path, 'wb') as f:
            f.write(base64.b64decode(data))

    def close(self):
        try:
            self.session = None
            self.call('Browser.close')
        except (Failed, OSError):
            pass
        self.process.wait()
        os.close(self.writing)
        self.reading.close()
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)
