"""Of what a trial has printed, Ray's own stacks are left out, however they are cut into pieces."""

from __future__ import annotations

import pytest

from raybo.engine.study.ray_stacks import INSTEAD, RayStacks

STACK = b"""[2026-11-25 03:53:10,840 C 19452 19452] memory_store.cc:352:  An unexpected system state has occurred.
*** StackTrace Information ***
/opt/ray/_raylet.so(+0x1812b9a) [0x7ff21da12b9a] ray::operator<<()
/usr/lib/libpython3.11.so.1.0(PyObject_Vectorcall+0x33) [0x7ff21eb58ba3] PyObject_Vectorcall
ray::trial(_start+0x21) [0x55b875c38081] _start

"""
BEFORE = b"epoch 1 [0.3]\n[2026-11-25 03:53:10] C is fine\n50 %\r[20/100"
AFTER = b"epoch 2\n"


@pytest.mark.parametrize("size", [1, 2, 7, 100, 10_000])
@pytest.mark.parametrize("before", [b"", BEFORE, BEFORE + b"\n"])
@pytest.mark.parametrize("after", [b"", AFTER])
def test_stack_is_replaced_by_a_line(size, before, after):
    stacks, data = RayStacks(), before + STACK + after
    got = b"".join(stacks.without(data[at : at + size]) for at in range(0, len(data), size)) + stacks.rest()
    newline = b"" if before.endswith(b"\n") or not before else b"\n"
    assert got == before + newline + INSTEAD + after


@pytest.mark.parametrize("size", [1, 5, 1_000])
def test_other_output_stays_as_it_is(size):
    stacks, data = RayStacks(), BEFORE + b"\n[2026-11-25 03:53:10,840 E 1 1] mine.py: no\n\n" + AFTER + b"[2026-"
    pieces = [stacks.without(data[at : at + size]) for at in range(0, len(data), size)]
    assert b"".join(pieces) + stacks.rest() == data


def test_only_the_beginning_of_a_head_is_held():
    stacks = RayStacks()
    assert stacks.without(b"50 %\r60 %") == b"50 %\r60 %"
    assert stacks.without(b"\r70 %[2026-11") == b"\r70 %"
