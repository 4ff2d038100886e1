"""Generator of pe-bench, ChaCha with 8 rounds, for the constants that vectors do not contain."""

import math
import struct


def seed_from_u64(state):
    """Key of a seed, 8 words, as rand_core expands it."""
    words = []
    for _ in range(8):
        state = (state * 6364136223846793005 + 11634580027462260723) % 2**64
        shifted, turn = (((state >> 18) ^ state) >> 27) % 2**32, state >> 59
        words.append((shifted >> turn | shifted << (-turn % 32)) % 2**32)
    return words


def block(key, counter):
    start = list(struct.unpack("<4I", b"expand 32-byte k")) + key + [counter, 0, 0, 0]
    s = start.copy()

    def quarter(a, b, c, d):
        for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[x] = (s[x] + s[y]) % 2**32
            mixed = s[z] ^ s[x]
            s[z] = (mixed << turn | mixed >> (32 - turn)) % 2**32

    for _ in range(4):
        for n in range(4):
            quarter(n, n + 4, n + 8, n + 12)
        for n in range(4):
            quarter(n, (n + 1) % 4 + 4, (n + 2) % 4 + 8, (n + 3) % 4 + 12)
    return [(a + b) % 2**32 for a, b in zip(s, start)]


def normals(seed):
    """Standard normal numbers."""

    def uniforms():
        key, counter = seed_from_u64(seed), 0
        while True:
            words = block(key, counter)
            counter += 1
            for low, high in zip(words[::2], words[1::2]):
                yield (high << 32 | low) // 2**11 * 2.0**-53

    draw = uniforms()
    while True:
        radius = math.sqrt(-2 * math.log(1 - next(draw)))
        yield radius * math.cos(math.tau * next(draw))
