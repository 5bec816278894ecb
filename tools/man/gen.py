#!/usr/bin/env python3
"""gen.py OUT VERSION: the library's manual: section 3, made from its public headers, and weir_semantics(7), made
from the table in core/weir/README.md.

The comments of the headers are each function's documentation; the pages show it by family, with an example
(examples/FAMILY.c) at the end. Each function and macro has a page of its own name that refers to its family's. A
header that is in no family is a page of its own.

A header is read as a row of pieces: comments, declarations, macros. A comment that begins with dashes is a
section and describes what follows; any other describes the declarations that follow it at once. Lists of
functions made by an X-macro are written out.
"""
import os
import re
import sys

FAMILIES = [
    ('weir_status', 'errors, and what the library says', ['core/weir.h', 'core/base/status.h', 'core/weir/log.h']),
    ('weir_device', 'devices, what is current, threads of the cpu', ['core/weir/device.h', 'core/weir/cuda.h', 'core/weir/threads.h']),
    ('weir_tensor', 'tensors that live on devices', ['core/weir/tensor.h', 'core/weir/dtype.h', 'core/weir/scope.h']),
    ('weir_ops', 'what is calculated with tensors', ['core/weir/ops.h', 'core/weir/functions.h', 'core/weir/linalg.h', 'core/weir/reduce.h', 'core/weir/order.h', 'core/weir/shape.h', 'core/weir/nn.h', 'core/weir/losses.h', 'core/weir/blas.h']),
    ('weir_indexing', 'elements chosen by index tensors and by masks', ['core/weir/indexing.h']),
    ('weir_stream', 'streams, events and graphs', ['core/weir/stream.h', 'core/weir/graph.h']),
    ('weir_memory', 'device memory and pinned memory',
     ['core/weir/memory.h', 'core/weir/pools.h', 'core/weir/oom.h', 'core/weir/history.h', 'core/weir/torch.h']),
    ('weir_module', 'modules, layers, and several devices at once', ['core/weir/module.h', 'core/weir/layers.h', 'core/weir/sequence.h', 'core/weir/parallel.h']),
    ('weir_training', 'derivatives, optimizers, learning rates, mixed precision', ['core/weir/grad.h', 'core/weir/optim.h', 'core/weir/amp.h', 'core/weir/schedule.h']),
    ('weir_data', 'datasets and loaders', ['core/weir/data.h']),
    ('weir_io', 'tensors in files and in other libraries', ['core/weir/io.h', 'core/weir/checkpoint.h', 'core/weir/shared.h', 'core/weir/dlpack.h']),
    ('weir_tracing', 'memory by tensor and module, written down', ['core/weir/trace.h']),
]


def comment_text(raw):
    lines = raw.strip()[2:-2].split('\n')
    return '\n'.join(re.sub(r'^\s*\* ?', '', line).rstrip() if i else line.strip() for i, line in enumerate(lines)).strip('\n')


def defines(source):
    """Macros with arguments: name -> (parameters, body)."""
    found = {}
    for m in re.finditer(r'^#define (\w+)\(([^)]*)\)((?:.*\\\n)*.*)$', source, re.M):
        found[m[1]] = ([p.strip() for p in m[2].split(',')], m[3].replace('\\\n', '\n'))
    return found


def expand(macros, table, row):
    """The declarations of TABLE(ROW)."""
    _, rows = macros[table]
    parameters, body = macros[row]
    text = ''
    for m in re.finditer(r'\bX\(([^)]*)\)', rows):
        values = [v.strip() for v in m[1].split(',')]
        one = body
        for p, v in zip(parameters, values):
            one = re.sub(r'(##)?\b%s\b(##)?' % re.escape(p), lambda _: v, one)
        text += one.strip() + '\n'
    return text


def pieces(source):
    """('comment', text, trailing) | ('code', text) | ('gap',)"""
    macros = defines(source)
    at = 0
    while at < len(source):
        gap = re.compile(r'\s*').match(source, at)
        if gap[0].count('\n') > 1:
            yield ('gap',)
        at = gap.end()
        if at >= len(source):
            return
        if source.startswith('/*', at):
            end = source.index('*/', at) + 2
            line = source[source.rfind('\n', 0, at) + 1:at].strip()
            yield ('comment', comment_text(source[at:end]), bool(line))
            at = end
        elif source[at] == '#':
            m = re.compile(r'(?:[^\n]*\\\n)*[^\n]*').match(source, at)
            name = re.match(r'#define (\w+)(\(?)', m[0])
            if name and not name[1].endswith(('_H', '_')) and '_DECLARE' not in name[1] and '_MAP' not in name[1]:
                plain = re.sub(r'\s*/\*.*?\*/', '', m[0], flags=re.S)
                yield ('code', plain)
                trailing = re.search(r'/\*(.*?)\*/', m[0], re.S)
                if trailing:
                    yield ('comment', trailing[1].strip(), True)
            at = m.end()
        else:
            call = re.compile(r'(\w+)\((\w+)\)\s*\n').match(source, at)
            if call and call[1] in macros and call[2] in macros:
                for d in expand(macros, call[1], call[2]).split(';'):
                    if d.strip():
                        yield ('code', d.strip() + ';')
                at = call.end()
                continue
            depth, end = 0, at
            while end < len(source):
                if source.startswith('/*', end):
                    end = source.index('*/', end) + 2
                    continue
                c = source[end]
                depth += (c in '{(') - (c in '})')
                end += 1
                if depth == 0 and c == ';' or depth == 0 and c == '}' and re.match(r'static inline|extern "C"', source[at:end]):
                    break
                if depth == -1:
                    break
                if source[at:end] == 'extern "C" {':
                    break
            text = source[at:end]
            if not text.startswith(('extern "C"', '}')):
                yield ('code', text)
            at = end


def declaration(code):
    if code.startswith('WEIR_PUBLIC '):
        code = re.sub(r'\n {12}', '\n', code)
    code = re.sub(r'WEIR_PUBLIC\s+', '', code)
    code = re.sub(r'\s*__attribute__\(\(format\(.*?\)\)\)', '', code, flags=re.S)
    if code.startswith('static inline'):
        code = code[len('static inline '):code.index('{')].rstrip() + ';'
    return code


def escape(line):
    line = line.replace('\\', '\\e')
    line = re.sub(r"^([.'])", r'\\&\1', line)
    return line.replace('-', '\\-')


def code_block(text):
    out = ['.PP', '.in +2n', '.nf']
    out += [escape(line) if line.strip() else '\\&' for line in text.rstrip('\n').split('\n')]
    return out + ['.fi', '.in']


def prose(text):
    out, block = [], []

    def flush():
        if block:
            out.append('.PP')
            out.extend(escape(line.strip()) for line in block)
            block.clear()
    literal = []
    for line in text.split('\n') + ['']:
        if line.startswith('  '):
            flush()
            literal.append(line[2:])
            continue
        if literal:
            out.extend(code_block('\n'.join(literal)))
            literal.clear()
        if line.strip():
            block.append(line)
        else:
            flush()
    return out


class Page:
    def __init__(self):
        self.lines, self.names = [], []

    def header(self, path, only):
        with open(path) as f:
            source = f.read()
        source = re.sub(r'#ifndef (\w+_H)\n#define \1\n', '', source, count=1)
        # what C reads
        source = re.sub(r'^#ifdef __cplusplus\n.*?^#(?:else\n(.*?)^#)?endif\n', lambda m: m[1] or '', source, flags=re.S | re.M)
        comment, codes, first = None, [], True
        items = list(pieces(source)) + [('gap',)]
        for i, item in enumerate(items):
            if item[0] == 'comment' and item[2] and codes:
                codes[-1] += ' /* %s */' % ' '.join(item[1].split())
            elif item[0] == 'comment':
                self.flush(comment, codes)
                comment, codes = None, []
                if first:
                    about = re.sub(r'^\S+\.h: ', '', item[1])
                    about = re.sub(r' Included by weir\.h\.', '', about.replace('\nIncluded by weir.h.', ''))
                    if not only:
                        self.lines += ['.SS ' + escape(os.path.basename(path)[:-2])]
                    self.lines += prose(about[:1].upper() + about[1:])
                elif item[1].startswith('---'):
                    title = re.match(r'-+ *(.*?) *-+', item[1])
                    self.lines += ['.SS ' + escape(title[1] if title else 'more')]
                    self.lines += prose(item[1][title.end():].strip('\n') if title else '')
                else:
                    comment = item[1]
                first = False
            elif item[0] == 'code':
                codes.append(declaration(item[1]))
                self.names += re.findall(r'^#define (\w+)(?<!_ENUM)(?<!_FIELD)(?<!WEIR_PUBLIC)\b', item[1])
                self.names += re.findall(r'\b(weir_\w+)\(', re.sub(r'\(\*\w+\)\(.*?\)', '', declaration(item[1]))) \
                    if 'WEIR_PUBLIC' in item[1] or 'static inline' in item[1] else []
            else:
                self.flush(comment, codes)
                comment, codes = None, []

    def flush(self, comment, codes):
        if codes:
            self.lines += code_block('\n'.join(codes))
        if comment:
            self.lines += prose(comment)


def semantics(path):
    """The rows of the table in a Markdown file: what is promised, the functions that keep it, its tests."""
    lines = []
    with open(path) as f:
        for row in re.findall(r'^\| (\d+) \| (.*?) \| (.*?) \| (.*?) \|$', f.read(), re.M):
            number, promise, functions, tests = (re.sub(r'\\?`', '', cell) for cell in row)
            lines += ['.TP', '.B %s' % number, escape(promise[:1].upper() + promise[1:]) + '.', '.br',
                      escape(re.sub(r' (?=weir_|WEIR_)', ', ', functions)) + '.']
            for test in tests.split('; '):
                suite, names = test.split(': ')
                lines += ['.br', '.I ' + escape(suite) + ':', escape(names.replace(' ', ', '))]
    return lines


def write_semantics(out, version, families):
    path = 'core/weir/README.md'
    with open('%s/weir_semantics.7' % out, 'w') as f:
        f.write('\n'.join(['.\\" Made by tools/man/gen.py from %s.' % path, '.TH WEIR_SEMANTICS 7 2026-11-22 "Weir %s"' % version,
                           '.SH NAME', 'weir_semantics \\- what the engine promises, by which functions, and by which tests it is shown',
                           '.SH DESCRIPTION', '.na', '.nh', "The engine has PyTorch's device model.",
                           'Each promise is followed by the functions that keep it and, by suite, the tests that show it.'] + semantics(path) +
                          ['.SH SEE ALSO', ' ,\n'.join('.BR %s (3)' % x for x in sorted(families))]) + '\n')


def main(out, version):
    listed = {h for _, _, hs in FAMILIES for h in hs}
    families = list(FAMILIES)
    for h in sorted(os.listdir('core/weir')):
        if h.endswith('.h') and 'core/weir/' + h not in listed:
            families.append(('weir_' + h[:-2], 'see the description', ['core/weir/' + h]))
    os.makedirs(out, exist_ok=True)
    for old in os.listdir(out):
        if old.endswith(('.3', '.7')):
            os.remove(os.path.join(out, old))
    pages = {f for f, _, _ in families}
    for family, about, headers in families:
        page = Page()
        for h in headers:
            page.header(h, len(headers) == 1)
        example = 'tools/man/examples/%s.c' % family
        lines = ['.\\" Made by tools/man/gen.py from the headers.', '.TH %s 3 2026-11-22 "Weir %s"' % (family.upper(), version),
                 '.SH NAME', '%s \\- %s' % (family, about), '.SH SYNOPSIS', '.nf', '#include <weir.h>', '',
                 'cc prog.c $(pkg\\-config \\-\\-cflags \\-\\-libs weir)', '.fi', '.SH DESCRIPTION'] + page.lines
        if os.path.exists(example):
            with open(example) as f:
                lines += ['.SH EXAMPLE'] + code_block(f.read())
        lines += ['.SH SEE ALSO', ',\n'.join('.BR %s (3)' % f for f in sorted(pages) if f != family).replace(',\n', ' ,\n'),
                  '.PP', '.BR weir (1)']
        lines = [line for i, line in enumerate(lines) if line != '.PP' or not lines[i - 1].startswith('.S')]
        with open('%s/%s.3' % (out, family), 'w') as f:
            f.write('\n'.join(lines) + '\n')
        for name in sorted(set(page.names) - pages):
            os.symlink('%s.3' % family, '%s/%s.3' % (out, name))  # not a .so request: man -l resolves none
    write_semantics(out, version, pages)


main(sys.argv[1], sys.argv[2])
