"""The colours of the page."""

import numpy as np

from kin_dashboard.style import GOOD, IDLE, SERIES, WARN, WRONG, rgb


def test_status_colours_stand_apart_for_colour_blind_readers():
    """Distances after simulated deuteranopia (Viénot 1999), in linear RGB."""
    to_lms = np.array(
        [[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]]
    )
    blind = np.array([[1.0, 0.0, 0.0], [0.494207, 0.0, 1.24827], [0.0, 0.0, 1.0]])
    seen = [
        np.linalg.inv(to_lms) @ blind @ to_lms @ (np.array(rgb(c)) / 255.0) ** 2.2
        for c in (GOOD, WARN, WRONG)
    ]
    for i in range(3):
        for j in range(i):
            assert np.linalg.norm(seen[i] - seen[j]) > 0.15
    assert len(set(SERIES)) == len(SERIES)
    assert IDLE not in (GOOD, WARN, WRONG)
