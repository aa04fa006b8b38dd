"""The operations of the kernel language: compiled, they give what they give in plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from gpu_kinematics import intrinsics
from gpu_kinematics.kernels import language

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


def compiled(name, count):
    function = getattr(intrinsics, name)
    if count == 1:
        return njit(lambda x: function(x))
    if count == 2:
        return njit(lambda x, y: function(x, y))
    return njit(lambda c, x, y: function(c, x, y))


UNARY = {name: compiled(name, 1) for name in ("sqrt", "rint", "fabs")}
BINARY = {name: compiled(name, 2) for name in ("both", "either")}
SELECT = compiled("select", 3)


@given(x=NUMBERS)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_a_number(name, x):
    assert same(UNARY[name](x), getattr(language, name)(x))


@pytest.mark.parametrize("p", [False, True])
@pytest.mark.parametrize("q", [False, True])
def test_conditions(p, q):
    for name, function in BINARY.items():
        assert function(p, q) == getattr(language, name)(p, q)
    assert SELECT(p, 2.0, 3.0) == language.select(p, 2.0, 3.0)


def test_polynomials():
    for u in np.linspace(-2.0, 2.0, 9):
        found = language.poly(float(u), (1.0, -2.0, 0.5))
        assert found == pytest.approx(np.polyval([0.5, -2.0, 1.0], u))
