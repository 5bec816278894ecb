#!/usr/bin/env python3
"""axe.py BUILD OUT AXE.js: the page of weir report --html, held to the rules of axe-core in Chromium.

Pages of made and hostile data, of two traces and of an empty one, in light and dark, as they open and with all that can be
opened, chosen and shown. What axe finds is printed; what is moderate, serious or critical fails. "skipped: no Chromium"
where there is none.
"""
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.realpath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'page'))
import browser

# Shows what is hidden until someone asks for it: tables, all rows, all findings, an operation with its stack.
OPEN_ALL = '''(async () => {
  document.querySelectorAll('details').forEach((d) => { d.open = true; });
  document.querySelectorAll('.more:not([hidden])').forEach((b) => b.click());
  document.querySelector('#timeline canvas')?.focus();
  await weirPage.settled();
  await new Promise((done) => setTimeout(done));
})()'''

RUN = '''axe.run(document, {resultTypes: ['violations']}).then((r) => ({
  rules: r.passes.length + r.violations.length,
  violations: r.violations.map((v) => [v.id, v.impact, v.help, v.nodes.slice(0, 4).map((n) => `${n.target.join(' ')}: ${n.html.slice(0, 160)} ${n.failureSummary.slice(0, 200)}`)]) }))'''


def make_pages(build, out):
    weir, e2e = os.path.join(build, 'bin/weir'), os.path.join(build, 'tests/e2e')

    def sh(*command, **more):
        subprocess.run(command, check=True, cwd=out, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **more)
    for name, *command in (('graphs', 'graph_caller', 'random', '1'), ('calls', 'random_caller', '1', '2', '400', 'tally.json')):
        sh(weir, 'run', '--force', '--sim=2', '--device-times=all', '-o', f'{name}.db', '--', os.path.join(e2e, command[0]), *command[1:])
        sh(weir, 'report', '--html', '-o', f'{name}.html', f'{name}.db')
    sh(weir, 'run', '--force', '--sim=1', '-o', 'empty.db', '--', 'true')
    sh(weir, 'report', '--html', '-o', 'empty.html', 'empty.db')
    for kind in ('made', 'hostile'):
        sh(sys.executable, '-B', os.path.join(HERE, '..', 'page', 'sample.py'), 'graphs.html', f'{kind}.html', '1', kind)
    return ['made', 'graphs', 'calls', 'empty', 'hostile']


def show_operation(b):
    for key in ('ArrowDown', '+', '+', '+', 'ArrowRight', 'Enter'):
        b.key(key)
        b.js('weirPage.settled()')


def main():
    build, out, script = (os.path.realpath(a) for a in sys.argv[1:])
    program = browser.find()
    if not program:
        print('skipped: no Chromium')
        return 0
    os.makedirs(out, exist_ok=True)
    axe = open(script, encoding='utf-8').read()
    bad = looked = rules = 0
    b = browser.Browser(program)
    try:
        for name in make_pages(build, out):
            for scheme, width in (('light', 1600), ('dark', 800), ('dark', 1600), ('light', 400)):
                b.theme(scheme)
                b.size(width, 1000)
                b.open(os.path.join(out, f'{name}.html'))
                b.js('weirPage.ready')
                b.js('weirPage.all()')
                b.js(axe)
                for state in ('as it opens', 'all open', 'chosen'):
                    if state == 'all open':
                        b.js(OPEN_ALL)
                        if b.js("Boolean(document.querySelector('#timeline canvas'))"):
                            show_operation(b)
                    if state == 'chosen':
                        b.js("document.querySelector('.place')?.click(), weirPage.settled()")
                    found = b.js(RUN)
                    looked += 1
                    rules = max(rules, found['rules'])
                    for rule, impact, text, nodes in found['violations']:
                        bad += impact in ('critical', 'serious', 'moderate')
                        print(f'{name}, {scheme}, {width}, {state}: {impact} {rule}: {text}', *nodes, sep='\n  ')
    finally:
        b.close()
    version = re.match(r'/\*! axe v([0-9.]+)', axe)
    print(f'axe-core {version.group(1) if version else ""}: {looked} views, {rules} rules, {bad} findings')
    return bad > 0 or not rules


sys.exit(main())
