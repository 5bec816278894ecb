#!/usr/bin/env python3
"""join.py PARTS OUT: the page without its data.

PARTS lists what it is made of, a line each: style FILE, library FILE (a LICENSE is beside it) and module FILE. They go where
app/page.html has the lines "<!-- style -->" and "<!-- script -->"; at "<!-- data -->" the text is divided: what comes before the
data, a NUL, what comes after, a NUL.
"""
import os
import re
import sys

TOP_NAME = re.compile(r'^(?:async )?(?:function\*?|class|const|let|var) +([A-Za-z_$][\w$]*)', re.M)
TOP_LIST = re.compile(r'^(?:const|let|var) +([{\[][^=]*[}\]]) *=', re.M)


def fail(text):
    sys.exit('join.py: ' + text)


def read(folder, name):
    with open(os.path.join(folder, name), encoding='utf-8') as f:
        text = f.read()
    if '\0' in text:
        fail(f'{name} has a NUL')
    return text


def library(folder, name):
    notice = read(folder, os.path.join(os.path.dirname(name), 'LICENSE'))
    if '*/' in notice:
        fail(f'the licence of {name} would end the comment it stands in')
    return f'/*! {os.path.basename(name)}\n{notice}*/\n{read(folder, name)}\n'


def module(folder, name, seen):
    text = read(folder, name)
    text = re.sub(r'^import .*\n?', '', text, flags=re.M)
    text = re.sub(r'^export (?=async |function|class |const |let |var )', '', text, flags=re.M)
    if re.search(r'^(export|import)\b', text, re.M):
        fail(f'{name}: an import or export that is more than a line')
    names = TOP_NAME.findall(text)
    for group in TOP_LIST.findall(text):
        names += re.findall(r'[A-Za-z_$][\w$]*(?= *[,}\]])', group)
    for n in names:
        if seen.setdefault(n, name) != name:
            fail(f'{n} is defined in {seen[n]} and in {name}')
    return text


def main():
    parts, out = sys.argv[1:]
    folder = os.path.dirname(parts)
    style, libraries, modules, seen = '', '', '', {}
    for line in read(folder, os.path.basename(parts)).splitlines():
        if not line or line.startswith('#'):
            continue
        kind, name = line.split(' ', 1)
        if kind == 'style':
            style += read(folder, name) + '\n'
        elif kind == 'library':
            libraries += '<script>\n' + library(folder, name) + '</script>\n'
        elif kind == 'module':
            modules += module(folder, name, seen) + '\n'
        else:
            fail(f'{parts}: what is "{kind}"?')
    for text in (libraries.replace('<script>\n', '').replace('</script>\n', ''), modules):
        if re.search(r'</script|<!--', text, re.I):
            fail('a script has "</script" or "<!--" in it, which ends it in HTML: write "<\\/script", "<\\!--"')
    if '</style' in style.lower():
        fail('a style has "</style" in it')
    page = read(folder, 'app/page.html')
    script = libraries + '<script>\n"use strict";\n(() => {\n' + modules + '})();\n</script>'
    for mark, text in (('style', '<style>\n' + style + '</style>'), ('script', script)):
        if page.count(f'<!-- {mark} -->') != 1:
            fail(f'page.html needs one line <!-- {mark} -->')
        page = page.replace(f'<!-- {mark} -->', text)
    halves = page.split('<!-- data -->')
    if len(halves) != 2:
        fail('page.html needs one line <!-- data -->')
    with open(out, 'w', encoding='utf-8') as f:
        f.write(halves[0] + '\0' + halves[1] + '\0')


main()
