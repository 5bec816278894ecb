#!/usr/bin/env python3
"""check-names.py: file names in comments and in Markdown, and Markdown's links, that lead nowhere; headers whose include guard
another header has.

Looked at are the files that git knows. A name is good where a file of the tree is called so, with as much of the path as is
given; where a makefile or a script names it outside of comments, as what a build makes; where a source includes it in angle
brackets, with or without its folder; or where it is another project's (OTHERS). Words in capitals stand for names (NAME.c). Prints what is not; exit
status 1 if there was any.
"""
import os
import re
import subprocess
import sys

# Files of the CUDA Toolkit, of NVTX, of glibc, of the kernel, of PyTorch and of libunwind that comments point to; what check-gpu
# writes; examples' own.
OTHERS = {'complex.h', 'cudadebugger.h', 'fatbinary_section.h', 'nvtxExtImpl.h', 'crt/host_runtime.h', 'linux/mempolicy.h',
          'kernel-open/nvidia/os-mlock.c', 'aten/src/ATen/native/cuda/Copy.cu', 'src/x86_64/Gtrace.c', 'tests/gpu/RESULTS.md', 'prog.c', 'a.c', 'b.S'}
NAME = re.compile(r'(?<![\w/.$*%{}<>-])((?:[A-Za-z_][\w.-]*/)*[A-Za-z_][\w-]*(?:\.[\w-]+)*'
                  r'\.(?:c|h|cc|cu|S|md|py|sh|mk|tsv|txt|sql|def|map|svg))(?![\w*%]|\.\w|/)')
LINK = re.compile(r'\]\(([^)#: ]+)(?:#[^)]*)?\)')
C_COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
GUARD = re.compile(r'^#ifndef (\w+_H)\n#define \1\n', re.M)
LINE_COMMENT = re.compile(r'(?:^|(?<=\s))#[^\n]*', re.M)


def text(path):
    with open(path, errors='replace') as f:
        return f.read()


def comments(path, whole):
    if path.endswith(('.c', '.h', '.cu', '.cc', '.S')):
        return C_COMMENT.findall(whole)
    if path.endswith('.md'):
        return [whole]
    if path.endswith(('.py', '.sh', '.mk', 'Makefile')):
        return LINE_COMMENT.findall(whole)
    return []


def main():
    files = [f for f in subprocess.check_output(['git', 'ls-files'], text=True).split('\n') if f and os.path.exists(f)]
    whole = {f: text(f) for f in files if re.search(r'\.(c|h|cu|cc|S|md|py|sh|mk)$|Makefile$|^\.ci/|^tests/(run|all)$', f)}
    made = '\n'.join(LINE_COMMENT.sub('', t) for f, t in whole.items() if not re.search(r'\.(c|h|cu|cc|S|md|py)$', f))
    included = set(re.findall(r'#\s*include <([^>]+)>', '\n'.join(whole.values())))
    included |= {name.rsplit('/', 1)[-1] for name in included}
    ends = {f[i:] for f in files for i in [0] + [m.end() for m in re.finditer('/', f)]}

    def good(name, of):
        return (name in ends or name in included or name in OTHERS or re.search(r'\b(?:NAME|FOLDER|PATH|FILE|UID|PID)\b|_NAME', name)
                or re.search(r'(?<![\w-])' + re.escape(name) + r'(?![\w.])', made) or name.startswith('build/')
                or os.path.exists(os.path.join(os.path.dirname(of), name)))

    bad = []
    for path, t in whole.items():
        for part in comments(path, t):
            bad += [(path, n) for n in NAME.findall(part) if not good(n, path)]
        if path.endswith('.md'):
            bad += [(path, 'link to ' + n) for n in LINK.findall(t)
                    if not os.path.exists(os.path.join(os.path.dirname(path), n))]
    for path, name in sorted(set(bad)):
        print(f'{path}: {name}: there is no such file')
    guarded = {}
    for path in (f for f in whole if f.endswith('.h')):
        for guard in GUARD.findall(whole[path]):
            guarded.setdefault(guard, []).append(path)
    shared = {guard: paths for guard, paths in guarded.items() if len(paths) > 1}
    for guard, paths in sorted(shared.items()):
        print(f'{guard}: the include guard of {", ".join(paths)}: of two, a file gets the first')
    return bool(bad or shared)


sys.exit(main())
