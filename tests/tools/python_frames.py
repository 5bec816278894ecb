"""python_frames.py: CUDA calls from frames of many kinds. Prints, for each, the size it allocates and
the frames as Python itself sees them, innermost first: what a trace of it must have."""
import ctypes
import sys
import threading

cuda = ctypes.CDLL("libcuda.so.1")  # releases the interpreter's lock
holding = ctypes.PyDLL("libcuda.so.1")  # keeps it
size = 4096


def frames(frame):
    while frame:
        code = frame.f_code
        yield "%s|%s|%d" % (code.co_qualname, code.co_filename, frame.f_lineno)
        frame = frame.f_back


def call(lib=cuda):
    global size
    size += 1
    p = ctypes.c_size_t()
    ok = lib.cuMemAlloc_v2(ctypes.byref(p), ctypes.c_size_t(size)) == 0; seen = list(frames(sys._getframe()))
    assert ok
    print(size, ";".join(seen))


class Box:
    def __init__(self, go=False):
        if go:
            call()

    def deep(self, depth):
        if depth:
            return self.deep(depth - 1)
        call(
            holding
        )

    def __getattr__(self, name):
        call()
        return name


def generator():
    call()
    yield 1
    yield from inner_generator()


def inner_generator():
    call(holding)
    yield 2


async def coroutine(deep):
    if deep:
        await coroutine(deep - 1)
    else:
        call()


def key_function():
    def inner(x):
        call()
        return x
    return sorted([3, 1], key=inner)


def größe():
    exec(compile("\n\n\ncall()", "<ключ>", "exec"), {"call": call})


def replaced():
    """A code object that takes the place of one that is gone."""
    for i in range(60):
        names = {"call": call}
        exec(compile("def f%d():\n%s  call()\n" % (i, "\n" * i), "<made>", "exec"), names)
        names["f%d" % i]()


def alike():
    """Code objects, one in the place of the other, that differ in their file alone, its middle, the end
    of a long name, or a late line."""
    for i in range(20):
        far = "x" * 90
        for source, file in (
            ("call()", "/tmp/generated_%d.py" % i),
            ("call()", "/tmp/%s/%02d/%s.py" % (far, i, far)),
            ("def %s%02d(): call()\n%s%02d()" % (far, i, far, i), "<named>"),
            ("pass\n" * 60 + "\n" * i + "call()\n" + "pass\n" * 60, "<lines>"),
        ):
            exec(compile(source, file, "exec"), {"call": call})


def use():
    assert cuda.cuCtxSetCurrent(context) == 0


def all_kinds():
    call()
    Box().deep(5)
    Box(True)
    Box().missing
    list(generator())
    key_function()
    größe()
    replaced()
    alike()
    for _ in range(30):  # more than what it takes to be read in the quick way
        call()
    [call() for _ in range(2)]
    try:
        coroutine(3).send(None)
    except StopIteration:
        pass
    eval("(lambda: call())()")


assert cuda.cuInit(0) == 0
context = ctypes.c_void_p()
assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
use()
all_kinds()
ctypes.CFUNCTYPE(None)(lambda: call())()
for _ in range(3):
    thread = threading.Thread(target=lambda: (use(), all_kinds()))
    thread.start()
    thread.join()
sys.stdout.flush()
