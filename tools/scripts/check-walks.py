#!/usr/bin/env python3
"""check-walks.py [FILE.md...]: walks through the code, in Markdown, that lead nowhere.

A step of a walk is `folder/file:name`, in backquotes, from the top of the tree: the file is there, and `name` is what it
defines: a function, a macro, a type, a variable or a table of C; a def or class of Python; in other files (tables, SQL,
shell) any word. Read are the files given, or all Markdown that git knows. Prints what is not there; exit status 1 if
there was any.
"""
import os
import re
import subprocess
import sys

STEP = re.compile(r'`([\w.-]+(?:/[\w.-]+)+):(\w+)(?:\(\))?`')
COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)


def defines(path, name):
    with open(path, encoding='utf-8', errors='replace') as f:
        text = f.read()
    word = r'\b%s\b' % re.escape(name)
    if path.endswith('.py'):
        return re.search(r'^\s*(?:def|class) %s|^%s =' % (word, word), text, re.M) is not None
    if not re.search(r'\.(c|h|cc|cu|cuh)$', path):
        return re.search(word, text) is not None
    text = COMMENT.sub(' ', text)
    function = r'^(?![ \t#}])[^;={}()]*%s\s*\([^;{}]*\)[^;{}]*\{' % word
    declared = r'^(?![ \t#}])[^;={}]*%s\s*\([^;{}]*\)[^;{}]*;' % word if path.endswith('.h') else r'(?!)'
    variable = r'^(?![ \t#}])[^;={}()]*%s(?:\[[^\]]*\])*\s*[=;]' % word
    macro = r'^[ \t]*#[ \t]*define %s' % word
    named = r'^(?:typedef )?(?:struct|enum|union) %s\s*\{|^\} %s;|^\s+%s\s*[=,(]' % (word, word, word)
    return any(re.search(p, text, re.M) for p in (function, declared, variable, macro, named))


def pages():
    try:
        return subprocess.run(['git', 'ls-files', '*.md'], capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return [os.path.join(d, f)[2:] for d, _, files in os.walk('.') for f in files if f.endswith('.md') and '/build/' not in d]


def main():
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
    steps, bad = 0, []
    for page in sys.argv[1:] or pages():
        with open(page, encoding='utf-8') as f:
            text = f.read()
        for m in STEP.finditer(text):
            steps += 1
            where = f'{page}:{text.count(chr(10), 0, m.start()) + 1}'
            if not os.path.isfile(m[1]):
                bad.append(f'{where}: {m[1]}: there is no such file')
            elif not defines(m[1], m[2]):
                bad.append(f'{where}: {m[1]} does not define {m[2]}')
    print(f'  {steps} steps of walks')
    for line in bad:
        print('error: ' + line, file=sys.stderr)
    return bool(bad)


if __name__ == '__main__':
    sys.exit(main())
