#!/usr/bin/env python3
"""gen.py: from the table of functions to the code that wraps them.

    gen.py --cuda DIR            writes interpose/table/hooks.gen.c, hooks.gen.h, lookups.gen.h,
                                 interpose/record/extractors.gen.h, interpose/reroute/handlers.gen.h and
                                 core/trace/api.def
    gen.py --cuda DIR --check    writes nothing; fails when one of them would change (the headers must
                                 be of the CUDA version that the committed files were made from)
    gen.py --cuda DIR --table F  the same, and fails when a function of cuda-api.txt or a look-up of F (name,
                                 version, flags a line) has no wrapper of its type and no line of unrecorded.tsv
    gen.py --cuda DIR --draft G  prints first-draft lines of hooks.tsv for group G of cuda-api.txt

Inputs: hooks.tsv (what is wrapped and what its arguments mean), unrecorded.tsv (what is not, and why),
cuda-api.txt (every function that exists), and CUDA's headers, preprocessed with __CUDA_API_VERSION_INTERNAL so that each exported
spelling is declared: cuda.h and cuda_runtime_api.h for prototypes, cudaTypedefs.h for the version
each ABI of a driver function came with (and its EGL, GL, VDPAU and profiler siblings). Numbers in api.def are append-only: a name already there
keeps its number.
"""
import argparse
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
GEN_H = os.path.join(HERE, 'hooks.gen.h')
EXTRACTORS_H = os.path.join(ROOT, 'interpose/record/extractors.gen.h')
LOOKUPS_H = os.path.join(HERE, 'lookups.gen.h')
HANDLERS_H = os.path.join(ROOT, 'interpose/reroute/handlers.gen.h')
API_DEF = os.path.join(ROOT, 'core/trace/api.def')
BANKS = {'driver': 0, '11': 1, '12': 2, '13': 3}

# Functions whose true answer depends on what is cached: interpose/reroute/query.c answers. Those that let others use the
# memory are events too, with an extractor; with a role "when" only the calls for which it is true.
QUESTIONS = ('cuMemGetInfo_v2', 'cuMemGetAddressRange_v2', 'cuMemHostGetDevicePointer_v2', 'cuMemHostGetFlags', 'cuPointerGetAttribute', 'cuPointerGetAttributes',
             'cuPointerSetAttribute', 'cuMemGetHandleForAddressRange', 'cuIpcGetMemHandle', 'cuStreamGetId', 'cuStreamGetId_ptsz')

# Arguments of each extractor: role[=default], a 64-bit word; "!": as it is, of the type in TYPES. Prototypes
# are made from it (record/extractors.gen.h).
EXTRACTORS = {
    'alloc': 'ptr bytes mem=WEIR_MEM_DEVICE',
    'alloc_pitch': 'ptr pitch rows width',
    'alloc_3d': '!out width rows',
    'alloc_async': 'ptr bytes stream pool=0',
    'pool_trim': 'pool bytes', 'pool_set': 'pool device', 'pool_destroy': 'pool',
    'alloc_host': 'ptr bytes flags=0',
    'alloc_array': 'handle element width height=1 depth=1 levels=1 flags=0',
    'import_array': 'handle element width height=1 depth=1 levels=1 flags=0',
    'free': 'ptr mem=WEIR_MEM_UNKNOWN', 'free_async': 'ptr stream',
    'import': 'ptr bytes=0 pool=0', 'ipc_open': 'ptr', 'ipc_close': 'ptr',
    'vmm_create': 'handle bytes !prop', 'vmm_import': 'handle', 'vmm_retain': 'handle address',
    'vmm_release': 'handle', 'vmm_map': 'ptr bytes handle', 'vmm_unmap': 'ptr bytes',
    'host_register': 'ptr bytes flags', 'host_unregister': 'ptr',
    'copy_batch': '!dsts !srcs !sizes count stream', 'copy_3d_batch': '!ops count stream',
    'call_batch': '!dsts !sizes count b=0 stream', 'decompress': '!params count stream',
    'graph': 'graph other=0', 'graph_add': 'graph node !node_params', 'graph_end': 'graph',
    'graph_instantiate': 'graph exec', 'graph_update': 'exec graph', 'graph_enable': 'exec node enabled',
    'graph_set_kernel': 'exec node !kernel', 'graph_set_kernel_v1': 'exec node !kernel_v1',
    'graph_set_copy': 'exec node !copy', 'graph_set_memset': 'exec node !memset',
    'graph_set_child': 'exec node child', 'graph_set': 'exec node !node_params',
    'memset': 'dst bytes value stream=0',
    'sync': 'type event=0 context=0', 'sync_stream': 'type stream event=0',
    'stream': 'stream create flags=0',
    'capture_begin': 'stream mode=0 graph=0', 'capture_end': 'stream graph',
    'event': 'event b=0', 'event_record': 'event stream flags=0',
    'launch': 'function gx=1 gy=1 gz=1 bx=1 by=1 bz=1 stream=0 args=0 extra=0',
    'launch_config': 'function !config args=0 extra=0', 'launch_config_rt': 'function !config_rt args=0',
    'launch_multi': '!launches count',
    'named': 'handle !name owner', 'named_kernel': 'handle !name owner', 'named_like': 'handle like',
    'named_list': '!kernels count owner',
    'context': 'a=0 device=WEIR_DEVICE_NONE b=0', 'context_made': 'context device b=0', 'context_own': 'context device b=0',
    'context_destroy': 'context',
    'peer_access': 'a=0 b=0',
    'primary_release': 'device', 'reset': 'device', 'reset_current': '',
    'code': 'a b=0 bytes=0',
    'profiler': 'start',
    'call': 'a=0 b=0 bytes=0 stream=WEIR_NO_STREAM',
}
TYPES = {'out': 'const struct cudaPitchedPtr *', 'dsts': 'const CUdeviceptr *', 'srcs': 'const CUdeviceptr *',
         'sizes': 'const size_t *', 'ops': 'const CUDA_MEMCPY3D_BATCH_OP *', 'config': 'const CUlaunchConfig *',
         'config_rt': 'const cudaLaunchConfig_t *', 'launches': 'const CUDA_LAUNCH_PARAMS *',
         'params': 'const CUmemDecompressParams *', 'name': 'const char *', 'kernels': 'const CUkernel *',
         'prop': 'const CUmemAllocationProp *',
         'node_params': 'const CUgraphNodeParams *', 'kernel': 'const CUDA_KERNEL_NODE_PARAMS_v2 *',
         'kernel_v1': 'const CUDA_KERNEL_NODE_PARAMS_v1 *', 'copy': 'const CUDA_MEMCPY3D *',
         'memset': 'const CUDA_MEMSET_NODE_PARAMS *'}
# In the place of an extractor: the call is counted, and no event (record/asked.h). So are the calls of a question for
# which "when" is not true.
ASKED = 'asked'
# What is called before the real function, and with which roles, for the extractors of "x+".
BEFORE = {'free': 'free', 'free_async': 'free', 'host_unregister': 'free', 'pool_destroy': 'pool_destroy',
          'reset_current': 'reset_current', 'vmm_release': 'vmm_release', 'ipc_close': 'ipc_close',
          'graph_end': 'graph_end', 'code': 'code', 'context_made': 'context_made',
          'context_own': 'context_made'}
BEFORE_ROLES = ('ptr', 'pool', 'handle', 'graph')
# The same of what decodes a copy (copy_args.h: copy_args_NAME, for the extractor copy_NAME); a last argument
# is whether the function is the synchronous form.
COPIES = {
    'copy_plain': 'dst src bytes kind arrays=0 stream=0',
    'copy_rows': 'dst dst_pitch=0 src src_pitch=0 width height kind arrays=0 stream=0',
    'copy_to_symbol': 'symbol src bytes kind stream=0', 'copy_from_symbol': 'dst symbol bytes kind stream=0',
    'copy_peer': 'dst dst_owner src src_owner bytes owners stream=0',
    'copy_2d': '!p stream=0', 'copy_2d_v1': '!p stream=0',
    'copy_3d': '!p stream=0', 'copy_3d_v1': '!p stream=0',
    'copy_3d_peer': '!p stream=0', 'copy_3d_parms': '!p stream=0',
    'copy_3d_peer_parms': '!p stream=0',
}
# At any depth of calls: what is called before the real function (None: nothing), and what after it.
INFORMED = {
    'cuInit': (None, 'driver_initialised((uint32_t)r)'),
    'capture_begin': ('capture_begins', 'capture_begun(counted, (uint32_t)r)'),
    'capture_end': ('capture_ends', 'capture_ended(counted, OWNER, (uint32_t)r, STREAM)'),
}

# What the rerouter learns of such a call within another, which is not rerouted: its object is gone.
GONE = {'cuEventDestroy': 'kept_event_gone', 'cuEventDestroy_v2': 'kept_event_gone',
        'cuStreamDestroy': 'kept_stream_gone', 'cuStreamDestroy_v2': 'kept_stream_gone'}

# Extractors of what no program calls in its inner loop: their wrappers are WEIR_RARE (wrap.h).
RARE = ('call', 'call_batch', 'code', 'profiler', 'decompress', 'graph', 'graph_add', 'graph_end', 'graph_instantiate', 'vmm_create', 'vmm_import', 'vmm_retain', 'vmm_release', 'vmm_map', 'vmm_unmap',
        'context', 'context_made', 'context_own', 'context_destroy', 'named', 'named_kernel', 'named_like', 'named_list',
        'pool_trim', 'pool_set', 'pool_destroy', 'peer_access', 'primary_release', 'reset', 'reset_current')

def is_rare(row):
    return row['extractor'] in RARE and not row['when']


# What strict and relaxed do in the place of a function (core/base/reroutes.h), by the row's handler or, where it has
# none, its extractor. The driver's functions of the second kind are also those that staging works with.
FAMILIES = {'cuMemAlloc': 'DEVICE', 'cuMemAllocPitch': 'DEVICE', 'cudaMallocPitch': 'DEVICE', 'cudaMalloc3D': 'DEVICE',
            'cuMemFree': 'DEVICE', 'cuMemFreeAsync': 'POOL', 'copy': 'STAGING PEER',
            'cuMemAllocHost': 'PINNED', 'cuMemHostAlloc': 'PINNED', 'cuMemFreeHost': 'PINNED',
            'cudaDeviceEnablePeerAccess': 'ACCESS', 'cudaDeviceDisablePeerAccess': 'ACCESS',
            'cuCtxEnablePeerAccess': 'ACCESS', 'cuCtxDisablePeerAccess': 'ACCESS',
            'cudaGetDeviceProperties': 'PROPERTIES',
            **dict.fromkeys(('cudaEventCreate', 'cuEventCreate', 'cuEventDestroy', 'cuEventRecord', 'cuEventRecordWithFlags',
                             'cuCtxRecordEvent', 'cuGreenCtxRecordEvent', 'cuEventElapsedTime', 'cuStreamWaitEvent',
                             'cuGraphAddEventRecordNode', 'cuGraphAddNode', 'cuGraphAddNode_v2'), 'EVENTS'),
            **dict.fromkeys(('cudaStreamCreate', 'cuStreamCreate', 'cuStreamCreateWithPriority', 'cuStreamDestroy',
                             'cuStreamSetAttribute', 'cuStreamCopyAttributes', 'cuStreamAttachMemAsync'), 'STREAMS'),
            'alloc_async': 'POOL', 'free_async': 'POOL', 'pool_trim': 'POOL'}
STAGING_USES = ('PINNED', 'POOL')

# A runtime's rerouted call is rerouted beneath, in the driver's function that it calls, where another tool has
# patched that: by route. And by extractor the role that one knows the other by.
BENEATH = {'cuMemAlloc': ['cuMemAlloc_v2'], 'cudaMallocPitch': ['cuMemAllocPitch_v2'],
           'cudaMalloc3D': ['cuMemAllocPitch_v2'], 'cuMemFree': ['cuMemFree_v2'],
           'cuMemFreeAsync': ['cuMemFreeAsync'], 'cuMemAllocHost': ['cuMemHostAlloc', 'cuMemAllocHost_v2'],
           'cuMemHostAlloc': ['cuMemHostAlloc', 'cuMemAllocHost_v2'], 'cuMemFreeHost': ['cuMemFreeHost']}
BENEATH_KEY = {'alloc': 'bytes', 'alloc_host': 'bytes', 'alloc_pitch': 'width', 'alloc_3d': 'width', 'free': 'ptr',
               'free_async': 'ptr'}

# Functions of libweir's own that tell what they did (core/trace/listener.h): in the trace, not wrapped.
ENGINE = [('weir_malloc', 'ALLOC'), ('weir_free', 'FREE'), ('weir_pinned_malloc', 'ALLOC'), ('weir_pinned_free', 'FREE')]
ENGINE_LAYER = 2

# ---- inputs ---------------------------------------------------------------------------------------


def toolkit_version(cuda):
    with open(f'{cuda}/include/cuda.h') as f:
        return int(re.search(r'#define CUDA_VERSION (\d+)', f.read()).group(1))


def preprocess(cuda, include):
    text = '#define __CUDA_API_VERSION_INTERNAL 1\n' + ''.join(f'#include <{i}>\n' for i in include)
    cmd = [os.environ.get('CC', 'cc'), '-E', '-P', '-x', 'c', f'-I{cuda}/include', '-']
    return subprocess.run(cmd, input=text, capture_output=True, text=True, check=True).stdout


def split_params(text):
    """'int a, void **b' -> [('int a', 'a'), ...]; [] for void."""
    text = re.sub(r'\s+', ' ', text).strip()
    if text in ('', 'void'):
        return []
    out = []
    for p in text.split(','):
        p = p.strip()
        out.append((re.sub(r'\s*\*\s*', ' *', p).replace('* *', '**').replace('* *', '**'),
                    re.search(r'(\w+)$', p).group(1)))
    return out


def prototypes(text, ret):
    found = {}
    for m in re.finditer(ret + r'\s+(cu\w+)\s*\(([^;()]*)\)\s*;', text):
        found[m.group(1)] = split_params(m.group(2))
    return found


def versions(text):
    """PFN typedefs -> {(base, per_thread): sorted [(version, typedef name)]}."""
    found = {}
    for m in re.finditer(r'\(\s*\*\s*PFN_(cu\w+?)_v(\d+)(_ptds|_ptsz)?\s*\)', text):
        key = (m.group(1), bool(m.group(3)))
        found.setdefault(key, set()).add((int(m.group(2)), f'PFN_{m.group(1)}_v{m.group(2)}{m.group(3) or ""}'))
    return {k: sorted(v) for k, v in found.items()}


def expand(word):
    m = re.match(r'(\w+)\{(.*)\}$', word)
    if not m:
        return [word]
    return [m.group(1) + ('' if v == '-' else v) for v in m.group(2).split(',')]


def all_names():
    """[(name, runtime, group)] of cuda-api.txt, in its order."""
    out, group = [], ''
    for line in open(os.path.join(HERE, 'cuda-api.txt')):
        if line.startswith('=='):
            group = line[2:].strip()
        m = re.match(r'(RUNTIME|DRIVER):\s*(.*)', line)
        for word in m.group(2).split() if m else ():
            out += [(n, int(m.group(1) == 'RUNTIME'), group) for n in expand(word)]
    return out


# The class of a function in api.def: unreached (also what no line knows), wrapped, and the other classes.
CLASSES = ('unreached', 'wrapped', 'asks', 'sets', 'below')


def unrecorded():
    """{name: (class, driver function or '')} of unrecorded.tsv."""
    out, kind = {}, ''
    for number, line in enumerate(open(os.path.join(HERE, 'unrecorded.tsv')), 1):
        if line.startswith('#') or not line.strip():
            continue
        f = line.rstrip('\n').split('\t')
        kind = f[0] or kind
        if len(f) != 3 or kind not in CLASSES:
            sys.exit(f'unrecorded.tsv:{number}: class, about, names')
        for word in f[2].split():
            names, _, driver = word.partition('=')
            for name in expand(names):
                if name in out:
                    sys.exit(f'unrecorded.tsv:{number}: {name} is there twice')
                out[name] = (kind, driver or re.sub(r'^cuda', 'cu', re.sub(r'_pts[z]$|_ptds$', '', name)) if kind == 'below' else '')
    return out


def table():
    rows = []
    for number, line in enumerate(open(os.path.join(HERE, 'hooks.tsv')), 1):
        if line.startswith('#') or not line.strip():
            continue
        f = line.rstrip('\n').split('\t') + [''] * 3
        roles = {}
        for r in f[5].split():
            key, eq, expr = r.partition('=')
            if not eq:
                sys.exit(f'hooks.tsv:{number}: role "{r}" has no expression')
            roles[key] = expr
        route, when = roles.pop('route', ''), roles.pop('when', '')
        before = f[4].endswith('+')
        rows.append(dict(line=number, name=f[0], variants=f[1].split(','), layer=f[2], category=f[3],
                         extractor=f[4].rstrip('+'), before=before, roles=roles, route=route, when=when,
                         banks=[b for b in f[6].split(',') if b] or ['11', '12', '13'],
                         prototype=f[7].strip()))
    return rows


# ---- api.def --------------------------------------------------------------------------------------


def guess_category(name, group):
    if group == 'copy' or 'cpy' in name.lower():
        return 'COPY'
    if group in ('alloc', 'hostreg', 'pool', 'vmm', 'managed', 'ipc', 'extmem'):
        if re.search(r'Free|Destroy|Unmap|Release|Close', name):
            return 'FREE'
        if re.search(r'Malloc|Alloc|Create|HostAlloc|Open|cuMemMap$|ImportPointer', name):
            return 'ALLOC'
        return {'hostreg': 'HOSTREG'}.get(group, 'OTHER')
    return {'memset': 'MEMSET', 'sync': 'SYNC', 'stream': 'STREAM', 'event': 'EVENT', 'launch': 'LAUNCH',
            'peer': 'CONTEXT', 'ctxdev': 'CONTEXT', 'module': 'MODULE', 'ptrquery': 'QUERY',
            'array_tex': 'OTHER', 'other': 'QUERY'}.get(group, 'OTHER')


def api_rows(rows, others):
    """[(number, name, runtime, category, class)], numbers kept from the api.def that is there."""
    known = {}
    if os.path.exists(API_DEF):
        for m in re.finditer(r'WEIR_API\((\d+), "(\w+)", (\d), WEIR_API_(\w+), (\d)\)', open(API_DEF).read()):
            known[m.group(2)] = (int(m.group(1)), int(m.group(3)), m.group(4))
    hooked = {}
    for r in rows:
        for v in r['variants']:
            hooked[r['name'] + ('' if v == '-' else v)] = (int(r['layer'] == 'runtime'), r['category'])
    want = [(n, rt, guess_category(n, g)) for n, rt, g in all_names()]
    listed = {n for n, _, _ in want}
    want += [(n, rt, c) for n, (rt, c) in hooked.items() if n not in listed]
    want += [(n, int(n.startswith('cuda')), guess_category(n, '')) for n in others if n not in listed and n not in hooked]
    want += [(n, ENGINE_LAYER, c) for n, c in ENGINE]
    out, last = {}, max([k[0] for k in known.values()], default=0)
    for name, (number, rt, cat) in known.items():
        out[name] = [number, name, rt, cat, 0]
    for name, rt, cat in want:
        if name not in out:
            last += 1
            out[name] = [last, name, rt, cat, 0]
        out[name][3] = cat
    for name, (kind, _) in others.items():
        out[name][4] = CLASSES.index(kind)
    for name, (rt, cat) in hooked.items():
        out[name][3], out[name][4] = cat, CLASSES.index('wrapped')
    return sorted(out.values())


def emit_api(api):
    head = ('/* api.def: generated by interpose/table/gen.py, do not edit. WEIR_API(number, name, runtime,\n'
            ' * category, class). Numbers are append-only. */\n')
    return head + ''.join(f'WEIR_API({n}, "{name}", {rt}, WEIR_API_{cat}, {h})\n' for n, name, rt, cat, h in api)


# ---- wrappers -------------------------------------------------------------------------------------


def value(expr, raw, names):
    """The C expression of a role: guarded where it looks through a pointer."""
    if expr.startswith('*'):
        p = expr[1:]
        return f'WEIR_OUT({p})'
    m = re.match(r'.*?\b(\w+)->', expr)
    text = expr.replace(',', ', ') if raw else f'W({expr.replace(",", ", ")})'
    if m and m.group(1) in names:
        return f'({m.group(1)} ? {text} : 0)'
    return text


def arguments(row, names, specs):
    """The C expressions of an extractor's arguments, from the roles of the row."""
    args, specs = [], specs.split()
    for spec in specs:
        raw, spec = spec.startswith('!'), spec.lstrip('!')
        role, _, default = spec.partition('=')
        expr = row['roles'].get(role, default or None)
        if expr is None:
            sys.exit(f"hooks.tsv:{row['line']}: extractor {row['extractor']} needs role {role}")
        args.append(value(expr, raw, names))
    extra = set(row['roles']) - {s.lstrip('!').partition('=')[0] for s in specs}
    if extra:
        sys.exit(f"hooks.tsv:{row['line']}: extractor {row['extractor']} has no role {sorted(extra)}")
    return args


def decoded(row, symbol, names):
    """The line of a copy's wrapper that decodes its arguments."""
    args = arguments(row, names, COPIES[row['extractor']]) + ['false' if 'Async' in symbol else 'true']
    return f"  const copy_args copy = copy_args_{row['extractor'][len('copy_'):]}({', '.join(args)});"


def refused(row, symbol, names):
    """Whether the rerouter refuses a copy or a fill by the driver (reroute.h); '': neither."""
    if row['layer'] != 'driver':
        return ''
    failed = 'failIdx' if 'failIdx' in names else 'NULL'
    if row['extractor'] in COPIES:
        return 'reroute_refuses_copy(&copy)'
    if row['extractor'] == 'copy_batch':
        return f'reroute_refuses_batch(dsts, srcs, sizes, count, {failed})'
    if row['extractor'] == 'copy_3d_batch':
        return f'reroute_refuses_boxes(opList, numOps, {failed})'
    if row['extractor'] == 'memset':
        element = int(re.search(r'D(8|16|32)(?!D)', symbol).group(1)) // 8
        rows = ('dstPitch', 'Width', 'Height') if 'Height' in names else ('0', 'N', '1')
        return 'reroute_refuses_fill(W(dstDevice), W({}), W({})*{}, W({}))'.format(*rows[:2], element, rows[2])
    return ''


def call(row, names):
    if row['extractor'] in COPIES:
        return 'record_copy(c, &copy);'
    return f"extract_{row['extractor']}({', '.join(['c'] + arguments(row, names, EXTRACTORS[row['extractor']]))});"


def header(name, what, text):
    guard = f'WEIR_INTERPOSE_{name.upper()}_GEN_H'
    return (f'/* {name}.gen.h: generated by interpose/table/gen.py, do not edit.{what} */\n'
            f'#ifndef {guard}\n#define {guard}\n\n{text}\n#endif\n')


def emit_extractors():
    out = []
    for name, specs in EXTRACTORS.items():
        roles = [spec.partition('=')[0] for spec in specs.split()]
        params = ['hook_call *c'] + [f'{TYPES[r[1:]]}{r[1:]}' if r[0] == '!' else f'extract_word {r}' for r in roles]
        out.append(f"void extract_{name}({', '.join(params)});\n")
    for name in dict.fromkeys(BEFORE.values()):
        roles = [r for r in EXTRACTORS[name].split() if r in BEFORE_ROLES]
        out.append(f"void extract_{name}_before({', '.join(['hook_call *c'] + ['extract_word ' + r for r in roles])});\n")
    return ''.join(out)


def before(row, names):
    if not row['before']:
        return ''
    args = ['c'] + [value(row['roles'][r], False, names) for r in BEFORE_ROLES if r in row['roles']]
    return f"  extract_{BEFORE[row['extractor']]}_before({', '.join(args)});\n"


def flags_of(row, symbol):
    f = []
    if row['layer'] == 'runtime':
        f.append('WEIR_EVF_RUNTIME')
    if symbol.endswith(('_ptds', '_ptsz')):
        f.append('WEIR_EVF_PTDS')
    if 'Async' in symbol:
        f.append('WEIR_EVF_ASYNC')
    return ' | '.join(f) or '0'


def routed(row, params, handler):
    """A handler's call. One that serves both layers has the driver's types: they are the runtime's but for their
    names, and `real` is called as what it is, a function of the same words."""
    def cast(have, want):
        kind = lambda p: re.sub(r'\w+$', '', p).strip()
        return have[1] if kind(have[0]) == kind(want[0]) else f'({kind(want[0])})(uintptr_t){have[1]}'
    own = [cast(p, h) for p, h in zip(params, handler['params'])]
    real = 'real' if row['layer'] == handler['layer'] else f"(CUresult (*)({plist(handler['params'])}))(uintptr_t)real"
    ret = '' if row['layer'] == 'driver' else '(cudaError_t)'
    return f"{ret}reroute_{row['route']}({', '.join(['c', real] + own)})"


# What changes nothing of what is live: while only memory is recorded such calls pass (call_passes() in wrap.h).
PASSES = tuple(COPIES) + ('copy_batch', 'copy_3d_batch', 'call_batch', 'decompress', 'memset', 'sync', 'sync_stream', 'event',
                          'event_record', 'launch', 'launch_config', 'launch_config_rt', 'launch_multi', 'peer_access')
# Of the extractors that others have, too: by name. Calls with a stream, but for those that make or end what is live.
PASSES_BY_NAME = {'call': r'(cu|cuda)(MemAdvise|MemPrefetch|TensorMap|TexObject|TexRef|FlushGPU|StreamWaitValue|StreamWriteValue|StreamBatchMemOp|'
                          r'StreamAddCallback|StreamAttachMem|LaunchHostFunc|SignalExternal|WaitExternal|Graphics(Map|Unmap)Resources|GraphUpload)',
                  'context': r'cudaSetDevice|cudaSetValidDevices|cuCtx(Push|Pop|Set)Current|cuCtxSet|(cu|cuda)CtxResetPersisting'}
# Those that do where some graph of the process allocates.
PASSES_UNLESS_GRAPHS = r'(cu|cuda)GraphLaunch'


def passing(row, symbol):
    """The condition under which a call passes; '': it never does."""
    by_name = PASSES_BY_NAME.get(row['extractor'])
    if row['when'] or symbol in QUESTIONS or row['before']:
        return ''
    if row['extractor'] == 'call' and re.match(PASSES_UNLESS_GRAPHS, symbol):
        return '!device_memory_is_of_graphs() && call_passes(c)'
    return 'call_passes(c)' if row['extractor'] in PASSES or (by_name and re.match(by_name, symbol)) else ''


def key_of(row, names):
    return value(row['roles'][BENEATH_KEY[row['extractor']]], False, names)


def asked(row, symbol, api, bank_expr, answer, ret):
    """The end of a wrapper that only counts its call (record/asked.h)."""
    return [f'  asked_slot *slot = asked_begin({api}, __builtin_return_address(0));',
            f'  if (__builtin_expect(!slot, 1)) return {answer};',
            f'  asked_answer asked = {{.api = {api}, .flags = {flags_of(row, symbol)}, .bank = (uint8_t){bank_expr}, .start = clock_ticks()}};',
            f'  {ret} r = {answer};', '  asked.status = (uint32_t)r;', '  asked_end(slot, &asked);', '  return r;']


def body(row, symbol, api, params, row_expr, bank_expr, handlers):
    """The inside of a wrapper."""
    names = [n for _, n in params]
    args = ', '.join(names)
    ret = 'CUresult' if row['layer'] == 'driver' else 'cudaError_t'
    void = symbol == '__cudaRegisterFunction'
    out = [f"  fn_{symbol} real = (fn_{symbol})(uintptr_t)hook_original({row_expr});",
           '  if (__builtin_expect(!real, 0)) return' + (';' if void else f" ({ret})WEIR_NOT_FOUND;")]
    if row['category'] == 'CONTEXT':
        out.append('  thread_self.context_trust = 0;')
    answer = f'real({args})'
    if symbol in QUESTIONS:
        answer = f'process_mode_now() != WEIR_OBSERVE ? handle_{symbol}(real, {args}) : real({args})'
    if row['extractor'] == ASKED:
        return '\n'.join(out + asked(row, symbol, api, bank_expr, answer, ret)) + '\n'
    if row['extractor'] == '-':
        handler = re.sub(r'_pts[z]$|_ptds$', '', symbol)
        ptds = 'true' if symbol != handler else 'false'
        if symbol in QUESTIONS:
            out.append(f'  return {answer};')
        else:
            out.append(f"  {'' if void else 'return '}handle_{handler}({bank_expr}, {ptds}, real, {args});")
        return '\n'.join(out) + '\n'
    around = INFORMED.get(row['extractor']) or INFORMED.get(symbol)
    if around and around[0]:
        out.append(f'  bool counted = {around[0]}();')
    outline = row['layer'] == 'runtime' and is_rare(row)
    enter = f"call_enter(c, {api}, {flags_of(row, symbol)}, {bank_expr})"
    if outline:
        enter = f"call_enter_from(c, {api}, {flags_of(row, symbol)}, {bank_expr}, site)"
    if row['when']:
        out += [f"  if (__builtin_expect(!({row['when']}), 1)) {{"]
        out += ['  ' + line for line in asked(row, symbol, api, bank_expr, answer, ret)] + ['  }']
    inner = row['extractor'].startswith('vmm_')  # an event within another library's call, too
    if inner:
        enter = f"call_enter_inner(c, &outer, {api}, {flags_of(row, symbol)}, __builtin_return_address(0))"
        out.append('  call_outer outer;')
    out.append('  hook_call call, *c = &call;')
    go, again = f'real({args})', ''
    plain, copied = go, ''
    if row['route'] or row['extractor'] == 'alloc_async':
        out.append(f"  c->site = {'site' if outline else '__builtin_return_address(0)'};")
    if row['route']:
        again = '  if (__builtin_expect(r != 0, 0)) reroute_note_error((int)r);'
    refusal = refused(row, symbol, names)
    if row['route'] == 'copy':
        go = f'rerouted && reroute_copy(c, &copy) ? ({ret})0 : {go}'
        copied = '  if (rerouted) reroute_copied(c, &copy, (int)r);'
    elif row['route']:
        by_us = routed(row, params, handlers[row['route']])
        step_back = 'process_mode_now() == WEIR_OBSERVE'
        if row['layer'] == 'runtime':
            allocates = 'true' if row['category'] == 'ALLOC' else 'false'
            for entry in BENEATH.get(row['route'], ()):
                entry += '_ptsz' if symbol.endswith('_ptsz') else ''
                step_back += f' || call_goes_beneath(c, FN(weir_e_w_{entry}), {allocates}, {key_of(row, names)})'
        go = f'{step_back} ? {go} : {by_us}'
    elif symbol in QUESTIONS:
        go = plain = answer
        again = '  if (__builtin_expect(r != 0, 0)) reroute_note_error((int)r);'
    else:
        again = (f'  while (__builtin_expect(r != 0, 0) && reroute_should_retry((int)r))\n'
                 f'    if (!(r = real({args}))) reroute_retry_succeeded({bank_expr});')
    if refusal:
        rerouted = 'rerouted' if copied else 'process_mode_now() != WEIR_OBSERVE'
        go = f'{rerouted} && {refusal} ? CUDA_ERROR_INVALID_VALUE : {go}'
    passes = passing(row, symbol)
    if passes:
        out.append(f'  if ({passes}) {{\n    {ret} passed = {plain};\n    call_passed();\n    return passed;\n  }}')
    if around:
        stream = row['roles'].get('stream')
        after = around[1].replace('STREAM', value(stream, False, names) if stream else '')
        out.append(f'  if (!{enter}) {{\n    {ret} r = real({args});\n    {after.replace("OWNER", "false")};\n    return r;\n  }}')
        again = f'{again}\n  {after.replace("OWNER", "true")};'
    elif refusal:
        out += [f'  if (!{enter}) {{', '    if (process_mode_now() != WEIR_OBSERVE) {']
        out += ['    ' + decoded(row, symbol, names)] if row['extractor'] in COPIES else []
        out += [f'      if ({refusal}) return CUDA_ERROR_INVALID_VALUE;', '    }', f'    return real({args});', '  }']
    elif row['layer'] == 'driver' and symbol.removesuffix('_ptsz') in sum(BENEATH.values(), []):
        by_us = routed(row, params, handlers[row['route']]).replace('(c, ', '(around, ', 1)
        out.append(f'  if (!{enter}) {{\n    hook_call *around = call_around({key_of(row, names)});\n'
                   f'    return around ? {by_us} : real({args});\n  }}')
    elif symbol in GONE:
        out.append(f'  if (!{enter}) {{\n    {GONE[symbol]}(W({names[0]}));\n    return {plain};\n  }}')
    else:
        out.append(f'  if (!{enter}) return {plain};')
    if passes:
        unless = passes.partition('call_passes(c)')[0].removesuffix(' && ')
        out.append(f"  {'if (' + unless + ') ' if unless else ''}call_is_left_out(c);")
    b = before(row, names)
    if b and row['route']:
        b = '  if (process_mode_now() == WEIR_OBSERVE) ' + b.strip()
    if b:
        out.append(b.rstrip('\n'))
    if row['extractor'] in COPIES:
        out.append(decoded(row, symbol, names))
    if copied:
        out.append('  bool rerouted = process_mode_now() != WEIR_OBSERVE;')
    out += ['  call_forward(c);', f'  {ret} r = {go};'] + [line for line in (copied, again) if line]
    out += ['  call_returned(c, (uint32_t)r);', '  ' + call(row, names),
            '  call_leave_inner(c, &outer);' if inner else '  call_leave(c);', '  return r;']
    return '\n'.join(out) + '\n'


def wrapper_of(bank, symbol):
    """The name of a row's wrapper; ROW_ before it is the row's number, an enumerator of hooks.gen.h."""
    return f'w_{symbol}' if bank == 0 else f'w{10 + bank}_{symbol}'


def plist(params):
    return ', '.join(p for p, _ in params) or 'void'


class Generator:
    def __init__(self, cuda):
        self.version = toolkit_version(cuda)
        self.rows = table()
        self.others = unrecorded()
        self.api = api_rows(self.rows, self.others)
        self.number = {a[1]: a[0] for a in self.api}
        self.driver = prototypes(preprocess(cuda, ['cuda.h', 'cudaProfiler.h']), 'CUresult')
        self.runtime = prototypes(preprocess(cuda, ['cuda_runtime_api.h']), 'cudaError_t')
        self.pfn = versions(preprocess(cuda, ['cudaTypedefs.h']))
        for header in ('EGL', 'GL', 'VDPAU', 'Profiler'):  # read raw: they include what may not be there
            with open(f'{cuda}/include/cuda{header}Typedefs.h') as f:
                self.pfn.update(versions(f.read().replace('CUDAAPI', '')))
        self.pfn.pop(('cuWGLGetDevice', False), None)
        self.entries = []  # (bank, symbol, wrapper)
        for r in self.rows:
            for v in r['variants']:
                symbol = r['name'] + ('' if v == '-' else v)
                for bank in ['driver'] if r['layer'] == 'driver' else r['banks']:
                    self.entries.append((BANKS[bank], symbol, r))
        self.entries.sort(key=lambda e: e[0])
        self.has_row = {(b, s) for b, s, _ in self.entries}
        if len(self.has_row) != len(self.entries):
            sys.exit('hooks.tsv: a symbol is there twice')
        self.abi = self.pair_versions()
        self.handlers = {}  # by name; the driver's rows come first
        for _, symbol, r in self.entries:
            if r['route']:
                self.handlers.setdefault(r['route'], dict(layer=r['layer'], params=self.params(r, symbol)))

    def pair_versions(self):
        """{(base, per_thread): [(version, typedef, exported symbol)]}: the n-th version of a name is
        its n-th exported spelling."""
        spelled = {}
        for name, rt, _ in all_names():
            if rt:
                continue
            m = re.match(r'(cu\w+?)((?:_v\d)?)((?:_ptds|_ptsz)?)$', name)
            spelled.setdefault((m.group(1), bool(m.group(3))), []).append((m.group(2), name))
        out = {}
        for key, pfns in self.pfn.items():
            symbols = [n for _, n in sorted(spelled.get(key, []))]
            if len(symbols) != len(pfns):
                sys.exit(f'{key}: versions {pfns} and exported names {symbols} do not pair')
            out[key] = [(v, t, s) for (v, t), s in zip(pfns, symbols)]
        return out

    def typedef_of(self):
        return {s: t for abis in self.abi.values() for _, t, s in abis}

    def params(self, row, symbol):
        if row['prototype']:
            return split_params(row['prototype'])
        declared = self.driver if row['layer'] == 'driver' else self.runtime
        if symbol not in declared:
            sys.exit(f"hooks.tsv:{row['line']}: {symbol} has no prototype in the headers")
        return declared[symbol]

    def row_of(self, bank, symbol, after=''):
        """The number of a symbol's row in that bank, with `after` added to it; None where it has no row."""
        return f'ROW_{wrapper_of(bank, symbol)}{after}' if (bank, symbol) in self.has_row else None

    def wrapper_driver(self, row, symbol):
        params, pfn = self.params(row, symbol), self.typedef_of()[symbol]
        same = '' if row['prototype'] else f"_Static_assert(WEIR_SAME(&w_{symbol}, {pfn}), \"{symbol}\");\n"
        return (f"typedef CUresult (*fn_{symbol})({plist(params)});\n"
                f"WEIR_BODY {'WEIR_RARE ' * is_rare(row)}CUresult w_{symbol}({plist(params)})\n{{\n"
                + body(row, symbol, self.number[symbol], params, self.row_of(0, symbol), 'WEIR_BANK_DRIVER', self.handlers) +
                f"}}\n{same}WEIR_EXPORT(w_{symbol}, {symbol}, WEIR_NODE_DRIVER);\n\n")

    def wrapper_runtime(self, row, symbol):
        params = self.params(row, symbol)
        args = ''.join(', ' + n for _, n in params)
        ret = 'void' if symbol == '__cudaRegisterFunction' else 'cudaError_t'
        banks = row['banks']
        core = f"k_{symbol}" + ('' if len(banks) == 3 else '_' + ''.join(banks))
        fn = f"fn_{symbol}" + ('' if len(banks) == 3 else '_' + ''.join(banks))
        rare = is_rare(row)
        inner = ', '.join(['uint32_t row', 'int bank'] + ['const void *site'] * rare + [p for p, _ in params])
        how = 'WEIR_RARE __attribute__((noinline))' if rare else 'inline __attribute__((always_inline))'
        site = ', __builtin_return_address(0)' * rare
        text = (f"typedef {ret} (*{fn})({plist(params)});\n"
                f"static {how} {ret} {core}({inner})\n{{\n"
                + body(row, symbol, self.number[symbol], params, 'row', 'bank', self.handlers).replace(f'fn_{symbol}', fn) + "}\n")
        for bank in banks:
            index = self.row_of(BANKS[bank], symbol)
            go = '' if ret == 'void' else 'return '
            text += (f"WEIR_BODY {'WEIR_RARE ' * rare}{ret} w{bank}_{symbol}({plist(params)}) {{ {go}{core}({index}, WEIR_BANK_RT{bank}{site}{args}); }}\n"
                     f"WEIR_EXPORT(w{bank}_{symbol}, {symbol}, WEIR_NODE_RT{bank});\n")
        if not row['prototype'] and symbol in self.runtime and '13' in banks:
            text += f"_Static_assert(WEIR_SAME(&w13_{symbol}, __typeof__(&{symbol})), \"{symbol}\");\n"
        return text + '\n'

    def emit_c(self):
        out = ['/* hooks.gen.c: generated by interpose/table/gen.py from hooks.tsv and CUDA\'s headers, do not edit.\n'
               ' * One wrapper a row; wrap.h explains each line of it. */\n',
               '#include "interpose/table/wrap.h"\n\n#define FN(wrapper) (__extension__(void *)(wrapper))\n', '\n_Atomic(void *) hook_originals[WEIR_ROWS];\n\n']
        done = set()
        for _, symbol, row in self.entries:
            key = (symbol, tuple(row['banks']), row['layer'])
            if key in done:
                continue
            done.add(key)
            out.append(self.wrapper_driver(row, symbol) if row['layer'] == 'driver'
                       else self.wrapper_runtime(row, symbol))
        out.append('#define ROW(wrapper, symbol, api, bank) [ROW_##wrapper] = {symbol, FN(weir_e_##wrapper), &hook_originals[ROW_##wrapper], api, bank},\n\n'
                   'const hook_row hook_rows[] = {\n')
        for bank, symbol, _ in self.entries:
            out.append(f'  ROW({wrapper_of(bank, symbol)}, "{symbol}", {self.number[symbol]}, {bank})\n')
        out.append('};\nconst uint32_t hook_row_count = WEIR_ROWS;\n\nconst void *const hook_copy_entries[] = {\n')
        out += [f'  FN(weir_e_w_{s}),\n' for b, s, row in self.entries if b == 0 and row['route'] == 'copy']
        out.append('  NULL,\n};\n\n')
        out.append(self.emit_names())
        out.append(self.emit_versions())
        return ''.join(out)

    def emit_names(self):
        """Every name there is, hashed: api number and row of each bank + 1."""
        size, slots = 4096, {}
        names = [a[1] for a in self.api if a[2] != ENGINE_LAYER]
        for i, name in enumerate(names):
            h = 2166136261
            for ch in name.encode():
                h = ((h ^ ch) * 16777619) & 0xffffffff
            at = h & (size - 1)
            while at in slots:
                at = (at + 1) & (size - 1)
            slots[at] = i + 1
        out = ['const hook_name hook_names[] = {\n']
        for name in names:
            rows = ', '.join(self.row_of(b, name, ' + 1') or '0' for b in range(4))
            out.append(f'  {{"{name}", {self.number[name]}, {{{rows}}}}},\n')
        out.append(f'}};\nconst uint16_t hook_name_slots[{size}] = {{\n')
        for at in range(0, size, 16):
            out.append('  ' + ', '.join(str(slots.get(at + i, 0)) for i in range(16)) + ',\n')
        out.append('};\n\n')
        return ''.join(out)

    def emit_versions(self):
        lines = []
        for (base, per_thread), abis in self.abi.items():
            for version, _, symbol in abis:
                row = self.row_of(0, symbol) or '-1'
                lines.append((base, int(per_thread), version, row, self.number[symbol]))
        lines.sort()
        out = ['const hook_abi hook_abis[] = {\n']
        out += [f'  {{"{b}", {v}, {p}, {r}, {n}}},\n' for b, p, v, r, n in lines]
        out.append('};\nconst uint32_t hook_abi_count = sizeof hook_abis / sizeof *hook_abis;\n')
        return ''.join(out)

    def emit_h(self):
        newest = max(v for abis in self.abi.values() for v, _, _ in abis)
        out = [f'#define WEIR_GEN_CUDA {self.version} /* CUDA_VERSION of the headers it was made from */\n'
               f'#define WEIR_ABI_NEWEST {newest} /* highest version any driver function here has */\n\n'
               '/* Numbers of the rows of hook_rows[], by wrapper; what uses one names it, so that a new line of hooks.tsv changes\n'
               ' * no line of another function. */\nenum hook_row_number {\n'
               + ''.join(f'  {self.row_of(b, s)},\n' for b, s, _ in self.entries) +
               '  WEIR_ROWS /* how many there are */\n};\n\n' + ''.join(f'#define WEIR_API_{n} {self.number[n]}\n' for n, _ in ENGINE) +
               '\n/* X(symbol): what libcuda.so.1 exports. */\n#define WEIR_DRIVER_SYMBOLS(X) \\\n']
        out.append(' \\\n'.join(f'  X({n})' for n, rt, _ in all_names() if not rt))
        out.append('\n\n/* X(symbol): what a libcudart exports and we wrap. */\n#define WEIR_RUNTIME_SYMBOLS(X) \\\n')
        seen = dict.fromkeys(s for b, s, _ in self.entries if b)
        out.append(' \\\n'.join(f'  X({n})' for n in seen) + '\n')
        return ''.join(out)

    def emit_handlers(self):
        out = []
        of = [(f'reroute_{n}', h['layer'], 'hook_call *c, ', h['params'])
              for n, h in self.handlers.items() if n != 'copy']
        of += [(f'handle_{s}', 'driver', '', self.params(r, s)) for _, s, r in self.entries if s in QUESTIONS]
        for name, layer, first, params in of:
            ret = 'CUresult' if layer == 'driver' else 'cudaError_t'
            own = ''.join(', ' + p for p, _ in params)
            out.append(f'{ret} {name}({first}{ret} (*real)({plist(params)}){own});\n')
        out.append('\n/* X(name, what is rerouted in the place of that function), by name. */\n#define WEIR_REROUTED(X) \\\n')
        out.append(' \\\n'.join(f'  X("{name}", {" | ".join(f"REROUTE_{f}" for f in families)})'
                                 for name, families in self.rerouted()) + '\n')
        return ''.join(out)

    def rerouted(self):
        """[(name, families)], sorted."""
        out = {}
        for _, symbol, row in self.entries:
            families = FAMILIES.get(row['route'] or row['extractor'], '').split()
            if row['layer'] == 'driver' and any(f in STAGING_USES for f in families):
                families += ['STAGING', 'PEER']
            if families:
                out[symbol] = families
        return sorted(out.items())

    def lookups(self, category):
        """Prototypes of what takes the place of the look-ups of that category, which record nothing."""
        out = {}
        for _, symbol, row in self.entries:
            name = 'handle_' + re.sub(r'_ptsz$|_ptds$', '', symbol)
            if row['extractor'] != '-' or symbol in QUESTIONS or row['category'] != category or name in out:
                continue
            params = self.params(row, symbol)
            ret = 'void' if symbol == '__cudaRegisterFunction' else ('CUresult' if row['layer'] == 'driver' else 'cudaError_t')
            own = ''.join(', ' + p for p, _ in params)
            out[name] = f'{ret} {name}(int bank, bool per_thread, {ret} (*real)({plist(params)}){own});\n'
        return ''.join(out.values())


def holes(gen, lookups):
    """What is wrong with the table: every function of cuda-api.txt is wrapped or of a class; a runtime function
    that is seen below has a wrapped driver function there; the look-ups get the wrapper of their own type."""
    wrapped = {s for _, s, _ in gen.entries}
    own = {s for _, s, row in gen.entries if row['prototype']}  # of types in no header that must be there
    driver = {s for b, s, _ in gen.entries if b == 0}
    out = [f'{n}: in both hooks.tsv and unrecorded.tsv' for n, (kind, _) in gen.others.items() if n in wrapped and kind != 'unreached']
    out += [f'{n}: in neither hooks.tsv nor unrecorded.tsv' for n, _, _ in all_names() if n not in wrapped and n not in gen.others]
    for name, (kind, below) in gen.others.items():
        if kind != 'below' or name in wrapped:
            continue
        thread = name.endswith(('_ptsz', '_ptds'))
        spelled = [s for abis in (gen.abi.get((below, thread)), gen.abi.get((below, False))) for _, _, s in abis or ()]
        if not spelled or not all(s in driver for s in spelled):
            out.append(f'{name}: below it {below} is not wrapped in all its versions')
    text, counts = gen.emit_c(), dict.fromkeys(CLASSES, 0)
    for line in open(lookups):
        name, version, flags = line.rstrip('\n').split('\t')
        if not name:
            continue
        abis = gen.abi.get((name, bool(int(flags, 16) & 2))) or gen.abi.get((name, False)) or []
        best = [(t, s) for v, t, s in abis if v <= int(version)]
        if not best:
            out.append(f'{name} {version} {flags}: no version of it is that old')
            continue
        typedef, symbol = best[-1]
        if symbol not in driver:
            kind = gen.others.get(symbol, ('',))[0]
            if kind in ('', 'below'):
                out.append(f'{name} {version} {flags}: {symbol} has no wrapper and no class')
            counts[kind or 'unreached'] += 1
        elif symbol not in own and f'_Static_assert(WEIR_SAME(&w_{symbol}, {typedef}), ' not in text:
            out.append(f'{name} {version} {flags}: the wrapper of {symbol} is not held against {typedef}')
        else:
            counts['wrapped'] += 1
    print(f"{len(wrapped)} of {len({n for n, _, _ in all_names()} | wrapped)} functions wrapped; look-ups: "
          + ', '.join(f'{n} {kind}' for kind, n in counts.items() if n))
    return out


def draft(gen, group):
    have = {r['name'] for r in gen.rows}
    guess = [('dst', r'^dst'), ('src', r'^src'), ('bytes', r'^(count|size|bytesize|ByteCount|length)$'), ('kind', r'^kind$'),
             ('stream', r'^(h?[sS]tream)$'), ('ptr', r'^(d?ptr|devPtr|p)$'), ('flags', r'^[fF]lags$')]
    for name, rt, g in all_names():
        base = re.sub(r'(_v\d)?(_ptds|_ptsz)?$', '', name)
        if not g.startswith(group) or base in have or base != name:
            continue
        params = (gen.runtime if rt else gen.driver).get(name, [])
        roles = ' '.join(f'{r}={n}' for _, n in params for r, pat in guess if re.match(pat, n))
        variants = [n[len(base):] or '-' for n, _, _ in all_names() if re.sub(r'(_v\d)?(_ptds|_ptsz)?$', '', n) == base]
        print('\t'.join([base, ','.join(variants), 'runtime' if rt else 'driver', guess_category(name, g), 'call', roles]))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument('--cuda', required=True)
    ap.add_argument('--check', action='store_true')
    ap.add_argument('--table')
    ap.add_argument('--draft')
    opt = ap.parse_args()
    opt.check |= bool(opt.table)
    made_from = re.search(r'WEIR_GEN_CUDA (\d+)', open(GEN_H).read()) if os.path.exists(GEN_H) else None
    if opt.check and made_from and int(made_from.group(1)) != toolkit_version(opt.cuda):
        print(f'made from CUDA {made_from.group(1)}; not compared with CUDA {toolkit_version(opt.cuda)}')
        return 0
    gen = Generator(opt.cuda)
    if opt.draft:
        return draft(gen, opt.draft)
    files = {os.path.join(HERE, 'hooks.gen.c'): gen.emit_c(), GEN_H: header('hooks', '', gen.emit_h()),
             EXTRACTORS_H: header('extractors', ' Look-ups of kernels (names.c), too.',
                                  emit_extractors() + gen.lookups('MODULE')),
             LOOKUPS_H: header('lookups', ' Look-ups of functions\n * (proc_address.c).', gen.lookups('OTHER')),
             HANDLERS_H: header('handlers', ' What wrappers call of the\n'
                                ' * rerouter: handlers (hooks.tsv: route=) and questions.', gen.emit_handlers()), API_DEF: emit_api(gen.api)}
    stale = [p for p, text in files.items() if not os.path.exists(p) or open(p).read() != text]
    for path in stale:
        if opt.check:
            print(f'{os.path.relpath(path, ROOT)} is not what hooks.tsv gives: run make gen', file=sys.stderr)
            continue
        with open(path, 'w') as f:
            f.write(files[path])
    wrong = holes(gen, opt.table) if opt.table else []
    print(''.join(f'{line}\n' for line in wrong), end='', file=sys.stderr)
    return 1 if opt.check and (stale or wrong) else 0


if __name__ == '__main__':
    sys.exit(main())
