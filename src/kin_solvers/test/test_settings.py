"""Settings refuse what they cannot mean, and name it."""

import math

import numpy as np
import pytest

from kin_solvers import Settings, SettingsError


@pytest.mark.parametrize(
    "bad",
    [{"sigma": 0.0}, {"sigma": -1.0}, {"sigma": math.nan}, {"rho": 0.0}, {"rho": 1.0},
     {"method": "slow"}, {"engine": "cloud"}, {"threads": -1}, {"max_boxes": 0}, {"max_bytes": 1}],
)  # fmt: skip
def test_bad_settings_are_refused(bad):
    with pytest.raises(SettingsError) as caught:
        Settings(**bad)
    assert caught.value.field == next(iter(bad))


def test_numbers_of_numpy_become_those_of_python():
    settings = Settings(sigma=np.float32(0.5), max_boxes=np.int64(7), threads=np.int8(2))
    assert [type(v) for v in (settings.sigma, settings.max_boxes, settings.threads)] == [
        float,
        int,
        int,
    ]
    assert (settings.sigma, settings.max_boxes, settings.threads) == (0.5, 7, 2)
