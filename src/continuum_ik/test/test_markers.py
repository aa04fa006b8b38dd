"""Colours of the rods."""

import numpy as np
import pytest

from continuum_ik.markers import MOST_CURVED, curvature, curvature_colours


def test_curvature_of_a_circle_and_of_a_line():
    angle = np.linspace(0.0, 1.0, 30)
    circle = 0.25 * np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1)
    assert curvature(circle) == pytest.approx(np.full(30, 4.0), rel=1e-9)
    line = np.outer(angle, [1.0, 2.0, 3.0])
    assert curvature(line) == pytest.approx(np.zeros(30), abs=1e-6)
    assert curvature(np.zeros((2, 3))).tolist() == [0.0, 0.0]
    assert np.isfinite(curvature(np.zeros((5, 3)))).all()


def test_colours_grow_in_lightness_with_curvature():
    colours = curvature_colours(np.linspace(0.0, 2.0 * MOST_CURVED, 40))
    lightness = colours @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(lightness[:20]) > 0.0).all()
    assert colours[-1] == pytest.approx(colours[25])  # beyond the last colour it stays
    assert colours.min() >= 0.0
    assert colours.max() <= 1.0
