"""xxHash64 with seed 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md): ids are routed by it, logs chain by it."""

from __future__ import annotations

import struct

_M = 0xFFFFFFFFFFFFFFFF
_P1 = 0x9E3779B185EBCA87
_P2 = 0xC2B2AE3D27D4EB4F
_P3 = 0x165667B19E3779F9
_P4 = 0x85EBCA77C2B2AE63
_P5 = 0x27D4EB2F165667C5

_stripe = struct.Struct("<4Q").iter_unpack
_word = struct.Struct("<Q").unpack_from
_half = struct.Struct("<I").unpack_from


def xxh64(data: bytes) -> int:
    """The hash as an unsigned integer of 64 bits."""
    n = len(data)
    at = n & ~31
    if at:
        v1, v2, v3, v4 = (_P1 + _P2) & _M, _P2, 0, _M + 1 - _P1
        for w1, w2, w3, w4 in _stripe(memoryview(data)[:at]):
            v1 = (v1 + w1 * _P2) & _M
            v1 = ((v1 << 31 | v1 >> 33) & _M) * _P1 & _M
            v2 = (v2 + w2 * _P2) & _M
            v2 = ((v2 << 31 | v2 >> 33) & _M) * _P1 & _M
            v3 = (v3 + w3 * _P2) & _M
            v3 = ((v3 << 31 | v3 >> 33) & _M) * _P1 & _M
            v4 = (v4 + w4 * _P2) & _M
            v4 = ((v4 << 31 | v4 >> 33) & _M) * _P1 & _M
        h = ((v1 << 1 | v1 >> 63) + (v2 << 7 | v2 >> 57) + (v3 << 12 | v3 >> 52) + (v4 << 18 | v4 >> 46)) & _M
        for v in (v1, v2, v3, v4):
            v = v * _P2 & _M
            h = ((h ^ ((v << 31 | v >> 33) & _M) * _P1 & _M) * _P1 + _P4) & _M
    else:
        h = _P5
    h = (h + n) & _M
    while at + 8 <= n:
        w = _word(data, at)[0] * _P2 & _M
        h ^= ((w << 31 | w >> 33) & _M) * _P1 & _M
        h = (((h << 27 | h >> 37) & _M) * _P1 + _P4) & _M
        at += 8
    if at + 4 <= n:
        h ^= _half(data, at)[0] * _P1 & _M
        h = (((h << 23 | h >> 41) & _M) * _P2 + _P3) & _M
        at += 4
    for c in data[at:]:
        h ^= c * _P5 & _M
        h = ((h << 11 | h >> 53) & _M) * _P1 & _M
    h = (h ^ h >> 33) * _P2 & _M
    h = (h ^ h >> 29) * _P3 & _M
    return h ^ h >> 32
