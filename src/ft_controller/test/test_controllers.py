import pytest

from ft_controller.controllers import (
    CONTROLLERS,
    Controller,
    compared_size,
    data_size,
    element_name,
    redundant,
)


def test_names_are_those_of_users_in_the_order_of_the_numbers():
    assert CONTROLLERS == ("serial", "parallel", "high_tolerance", "lower_tolerance", "echo")
    assert [redundant(c) for c in Controller] == [False, False, True, True, True]


@pytest.mark.parametrize(
    "controller, data, compared",
    [
        (Controller.HIGH_TOLERANCE, 20, 16),  # M, N; M
        (Controller.LOWER_TOLERANCE, 4, 4),  # the diagonal of M
        (Controller.ECHO, 24, 24),  # M, N, tau
    ],
)
def test_what_is_published_and_compared(controller, data, compared):
    assert (data_size(controller, 4), compared_size(controller, 4)) == (data, compared)


def test_elements_are_named_through_m_n_and_tau():
    names = [element_name(k, 2) for k in range(8)]
    assert names == ["M[0,0]", "M[0,1]", "M[1,0]", "M[1,1]", "N[0]", "N[1]", "tau[0]", "tau[1]"]
    assert element_name(1, 2, "lower_tolerance") == "M[1,1]"
