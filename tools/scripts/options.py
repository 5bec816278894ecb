#!/usr/bin/env python3
"""options.py [--check]: the heads of the lists of options in weir(1), made of tools/weir/base/options.def.

In the part of a command (".Ss weir NAME") each line ".It Fl ..." is written anew from the rows of the options that it
names; the text below it stays. Fails where the page lacks an option that the command takes, has one that it does not
take, or has one twice. --check writes nothing, and fails where a line would change.
"""
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
TABLE = 'tools/weir/base/options.def'
PAGE = 'tools/man/weir.1'
# Where a row has its value's name.
VALUE = {'FLAG': None, 'TEXT': 4, 'NUMBER': 4, 'WORD': 4, 'READ': 4, 'MAYBE': 4}


def fields(text):
    """The fields of a row; a string's parts are joined, NULL and 0 are None."""
    for part in re.findall(r'((?:"(?:[^"\\]|\\.)*"|\'.\'|[^,"\'])+)(?:,|$)', text):
        strings = re.findall(r'"((?:[^"\\]|\\.)*)"', part)
        letter = re.fullmatch(r"\s*'(.)'\s*", part)
        word = part.strip()
        yield ''.join(strings) if strings else letter[1] if letter else None if word in ('NULL', '0') else word


def rows(path):
    """(kind, commands, name, letter, value) of each row."""
    with open(path, encoding='utf-8') as f:
        text = re.sub(r'/\*.*?\*/', '', f.read(), flags=re.S)
    for m in re.finditer(r'^(\w+)\(((?:"(?:[^"\\]|\\.)*"|[^"()])*)\)$', text, re.M):
        row = list(fields(m[2]))
        if m[1] != 'FORMER':
            value = row[VALUE[m[1]]] if VALUE[m[1]] else None
            yield m[1], {c.strip()[3:].lower() for c in row[0].split('|')}, row[2], row[3], value


def mdoc(value):
    """A value's name as mdoc(7): "N[,CARD]" as "Ar n Ns Oo , Ns Ar card Oc"."""
    words = [{'[': 'Oo', ']': 'Oc'}.get(w, w if re.match(r'\W', w) else 'Ar ' + w.lower()) for w in re.findall(r'\w+|\.+|\W', value)]
    return re.sub(r'Oo Ns ', 'Oo ', re.sub(r' Ns Oc', ' Oc', ' Ns '.join(words)))


def head(row):
    kind, _, name, letter, value = row
    after = {'FLAG': '', 'MAYBE': ' Ns Op = Ns '}.get(kind, ' ') + (mdoc(value) if value else '')
    return (f'Fl {letter}{after} , ' if letter else '') + f'Fl -{name}{after}'


def main():
    os.chdir(TOP)
    table, errors, seen = list(rows(TABLE)), [], {}
    with open(PAGE, encoding='utf-8') as f:
        old = f.read().split('\n')
    command, new = None, []
    for line in old:
        if re.match(r'\.S[sh] ', line):
            part = re.match(r'\.Ss weir (\w+)', line)
            command = part[1] if part else None
        if command and line.startswith('.It Fl '):
            heads = []
            for name in re.findall(r'Fl -([a-z-]+)', line):
                row = next((r for r in table if command in r[1] and r[2] == name), None)
                if not row:
                    errors.append(f'{PAGE}: weir {command} has no option --{name}')
                if (command, name) in seen:
                    errors.append(f'{PAGE}: weir {command} --{name} is there twice')
                seen[command, name] = True
                heads += [head(row)] if row else []
            line = '.It ' + ' , '.join(heads)
        new.append(line)
    errors += [f'{PAGE}: weir {c} --{r[2]} is missing' for r in table for c in sorted(r[1]) if (c, r[2]) not in seen]
    for e in errors:
        print(e, file=sys.stderr)
    if errors:
        return 1
    if '--check' in sys.argv[1:]:
        for a, b in zip(old, new):
            if a != b:
                print(f'{PAGE}: "{a}" is to be "{b}": make options', file=sys.stderr)
        return old != new
    if old != new:
        with open(PAGE, 'w', encoding='utf-8') as f:
            f.write('\n'.join(new))
    return 0


if __name__ == '__main__':
    sys.exit(main())
