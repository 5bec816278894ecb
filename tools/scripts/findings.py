#!/usr/bin/env python3
"""findings.py [--check | --man OUT VERSION]: tools/doc/findings.md, made of the pages that 'weir explain' prints.

Each page is reports/findings/explain/ID.md; number, title and severity are those of the rule in reports/findings/rules. The table of
all has the programs in tests/victims/findings and the savings in tools/doc/savings.tsv.
--check writes nothing: exit status 1 where the document is not what would be made, a rule has no page or a page no rule.
--man writes OUT/weir-findings.7, of the same texts.
"""
import os
import re
import sys

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..')
ABOUT = ('The cost of a finding is the time that its operations take of a thread; the saving is what the run gains without them, at most. '
         'Operations that several rules find count once. Of a place the slowest hundredth counts as the median, where these take '
         'eight times the median or longer.')
RULES, PAGES, DOCUMENT = 'reports/findings/rules', 'reports/findings/explain', 'tools/doc/findings.md'
VICTIMS, SAVINGS = 'tests/victims/findings', 'tools/doc/savings.tsv'


def text(path):
    with open(path, encoding='utf-8') as f:
        return f.read()


def header(sql):
    """The values of the lines "-- key: value"; one that begins "--   " goes on with the line above."""
    joined = re.sub(r'\n--   +', ' ', sql)
    return dict(re.findall(r'^-- (\w+): +(.*?) *$', joined, re.M))


def rules():
    """(number, id, title, severity, page) of each, in the order of 'weir explain'."""
    found = [header(text(os.path.join(RULES, name))) for name in os.listdir(RULES) if name.endswith('.sql')]
    named, paged = {r['id'] for r in found}, {name[:-3] for name in os.listdir(PAGES)}
    for name in sorted(named ^ paged):
        print(f'{PAGES}/{name}.md: ' + ('is missing' if name in named else 'belongs to no rule'), file=sys.stderr)
    if named != paged:
        sys.exit(1)
    found.sort(key=lambda r: (int(r['number']), r['id']))
    return [(int(r['number']), r['id'], r['title'], r.get('severity', 'medium'), text(f'{PAGES}/{r["id"]}.md')) for r in found]


def victims():
    """By rule: the file of the program that commits the waste, its function, and that of its twin."""
    found = {}
    for name in sorted(os.listdir(VICTIMS)):
        for rule, waste, twin in re.findall(r'^ *\{"([\w-]+)",\s+(\w+),\s+(\w+),', text(os.path.join(VICTIMS, name)), re.M):
            found[rule] = (name, waste, twin)
    return found


def savings():
    """The commit that was measured; and by rule, 'predicted / gained' of each of its wastes, ms."""
    lines = text(SAVINGS).splitlines() if os.path.exists(SAVINGS) else ['']
    tree, found = re.sub(r'^# (.*):.*', r'\1', lines[0]) or 'not measured yet', {}
    for line in lines[1:]:
        _, rule, predicted, gained = line.split('\t')
        found.setdefault(rule, []).append(f'{predicted} / {gained}')
    return tree, found


def table(pages):
    programs, (tree, measured) = victims(), savings()
    out = ['## The programs of each rule\n', 'Of each rule the program that commits the waste and the twin that looks like it (`tests/victims/findings`, '
           '`build/tests/findings/waster ID [twin]`), and of those whose costs the software device has what the rule predicts and what the '
           f'fixed program gains, in ms (`make savings`, {tree}).\n',
           '| no. | rule | severity | victim | twin | predicted / gained |', '|---|---|---|---|---|---|']
    for number, name, _, severity, _ in pages:
        file, waste, twin = programs.get(name, ('–', '–', '–'))
        out.append(f'| {number} | [{name}](#{name}) | {severity} | `{waste}` in {file} | `{twin}` | {"; ".join(measured.get(name, ["–"]))} |')
    return '\n'.join(out) + '\n'


def document():
    pages = rules()
    out = ['# What findings mean\n\nA page for each rule of `weir report findings`, in the order of their numbers, as '
           '`weir explain RULE` prints it.\n\n' + ABOUT + '\n']
    for number, name, title, severity, page in pages:
        out.append(f'## {name}\n\n**{title}.** Rule {number}, severity {severity}.\n\n' + re.sub('^## ', '### ', page, flags=re.M))
    return '\n'.join(out + [table(pages)])


# ---- the man page --------------------------------------------------------------------------------

def escape(line):
    line = line.replace('\\', '\\e').replace('-', '\\-')
    return re.sub(r"^([.'])", r'\\&\1', line)


def prose(paragraph):
    lines = '\n'.join(escape(line) for line in paragraph.split('\n'))
    lines = re.sub(r'`([^`]*)`', r'\\fB\1\\fR', lines)
    return re.sub(r'(?<!\S)\*(\w+)\*', r'\\fI\1\\fR', lines)


def page_lines(page):
    """A page in man(7). Marks may begin in one line of a paragraph and end in the next, so that it is read as a whole."""
    out = []
    for i, part in enumerate(re.split(r'^```\n', page, flags=re.M)):
        if i % 2:
            out += ['.PP', '.in +2n', '.nf'] + [escape(line) if line.strip() else '\\&' for line in part.rstrip('\n').split('\n')] + ['.fi', '.in']
            continue
        for paragraph in re.findall(r'^## .*|(?:^(?!## ).+\n?)+', part, re.M):
            if paragraph.startswith('## '):
                out.append('.SS ' + escape(paragraph[3:]))
            else:
                out += ['.PP', prose(paragraph.strip())]
    return out


def man(out, version):
    lines = ['.\\" Made by tools/scripts/findings.py from ' + PAGES + '.', f'.TH WEIR\\-FINDINGS 7 2026-11-29 "Weir {version}"', '.SH NAME',
             'weir\\-findings \\- what findings mean, what to do about them, when to leave them', '.SH DESCRIPTION',
             'A page for each rule of', '.BR "weir report findings" ,', 'as', '.B weir explain', 'prints it.', '.PP', escape(ABOUT)]
    for number, name, title, severity, page in rules():
        lines += ['.SH ' + escape(f'{name} ({number})'), escape(f'{title}.'), f'Severity {severity}.'] + page_lines(page)
    lines += ['.SH SEE ALSO', '.BR weir (1)']
    lines = [line for i, line in enumerate(lines) if line != '.PP' or not lines[i - 1].startswith('.S')]
    with open(os.path.join(out, 'weir-findings.7'), 'w', encoding='utf-8') as f:
        f.write('\n'.join(lines) + '\n')


def main():
    arguments = sys.argv[1:]
    if arguments[:1] == ['--man']:
        out = os.path.abspath(arguments[1])
        os.chdir(TOP)
        man(out, arguments[2])
        return 0
    os.chdir(TOP)
    new, old = document(), text(DOCUMENT) if os.path.exists(DOCUMENT) else ''
    if '--check' in arguments:
        if new != old:
            print(f'{DOCUMENT} is not what {PAGES} has: make findings', file=sys.stderr)
        return new != old
    if new != old:
        with open(DOCUMENT, 'w', encoding='utf-8') as f:
            f.write(new)
    return 0


if __name__ == '__main__':
    sys.exit(main())
