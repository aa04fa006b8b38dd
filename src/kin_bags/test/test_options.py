"""Words of the command line that cannot be understood."""

import pytest

from kin_bags.command import main


@pytest.mark.parametrize(
    "words",
    [[], ["nope"], ["replay"], ["replay", "b", "--rate", "-1"], ["replay", "b", "--remap", "x"]],
)
def test_usage_errors_are_exit_2(words):
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
