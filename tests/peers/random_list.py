#!/usr/bin/env python3
"""random_list.py SEED: a random list of allocations in the format of RMM's log, for peers.sh.

Few or many streams, narrow or wide sizes, blocks freed on the stream that used them or on another,
and now and then half of what is held goes at once. The seed decides everything.
"""
import random
import sys

draw = random.Random(int(sys.argv[1]))
count = draw.choice([300, 2000, 6000])
streams = [0] + [0x55550010 + 16 * i for i in range(draw.choice([0, 1, 2, 7, 39]))]
foreign = draw.choice([0, 0.02, 0.3])  # share of the frees on another stream
least, most = draw.choice([(4, 20), (9, 27), (16, 28)])  # sizes: powers of two
held = draw.choice([20, 200, 1000])  # blocks, on average

print("Thread,Time,Action,Pointer,Size,Stream")
live, address = [], 0x7F0000000000


def line(i, action, block):
    second, micro = divmod(i, 1000000)
    print(f"0,00:00:{second:02d}.{micro:06d},{action},{block[0]:#x},{block[1]},{block[2]:#x}")


for i in range(count):
    if live and draw.random() < len(live) / (2 * held):
        block = live.pop(draw.randrange(len(live)))
        if draw.random() < foreign:
            block = (block[0], block[1], draw.choice(streams))
        line(i, "free", block)
    else:
        size = int(2 ** draw.uniform(least, most))
        live.append((address, size, draw.choice(streams)))
        line(i, "allocate", live[-1])
        address += size + 4096
    if draw.random() < 0.002:
        draw.shuffle(live)
        for block in live[len(live) // 2:]:
            line(i, "free", block)
        del live[len(live) // 2:]
