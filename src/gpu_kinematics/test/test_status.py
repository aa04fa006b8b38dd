"""Status masks in words."""

import numpy as np

from gpu_kinematics import explain
from gpu_kinematics.status import summary


def test_masks_in_words():
    assert explain(0) == "ok"
    assert explain(0x080) == "arm 2 is above its joint limit"
    assert "arm 3 is too far" in explain(0x100) and "NaN" in explain(4096)
    text = summary(np.array([0, 1, 1, 4096, 8, 2, 32768], np.uint16))
    assert text.startswith("2 robots: arm 1 is too far") and "more reasons" in text
