"""The parameters of the node, as the library gets them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hier_ik.parameters import HierParameters
from kin_core.errors import InvalidInput


def test_options_are_those_of_the_parameters():
    options = HierParameters(
        tolerance=1e-4, rest_gain=0.0, membership="mirror", max_iterations=7
    ).options
    assert (options.tolerance, options.rest_gain) == (1e-4, 0.0)
    assert (options.membership, options.max_iterations) == ("mirror", 7)


def test_a_preset_needs_its_file():
    HierParameters().check()
    HierParameters(preset="file", linkage_file="a.yaml").check()
    with pytest.raises(InvalidInput, match="linkage_file"):
        HierParameters(preset="file").check()


def test_a_preset_is_known_or_a_file_or_in_a_folder():
    for preset in ("none", "flat_tower", "a.urdf", "/b/c.yaml"):
        HierParameters(preset=preset).check()
    assert HierParameters(preset="a.urdf").names_file
    with pytest.raises(InvalidInput, match="preset"):
        HierParameters(preset="castle").check()
    HierParameters(preset="castle", robots_folder="robots").check()


def test_no_sidecar_is_none():
    assert HierParameters().sidecar is None
    assert HierParameters(closures_file="loops.yaml").sidecar == Path("loops.yaml")
