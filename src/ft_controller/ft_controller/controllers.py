"""The controllers: what each processor computes, what is compared, and what is shared out.

| controller      | data          | compared   | result                |
|-----------------|---------------|------------|-----------------------|
| serial          |               |            | processor 0: all      |
| parallel        |               |            | joints i mod p        |
| high_tolerance  | M, N          | M          | own joints' tau       |
| lower_tolerance | diagonal of M | the same   | own rows of M, N, tau |
| echo            | M, N, tau     | M, N, tau  | (data are voted on)   |
"""

from __future__ import annotations

from enum import IntEnum

from numba import njit

__all__ = ["CONTROLLERS", "Controller", "compared_size", "data_size", "element_name", "redundant"]


class Controller(IntEnum):
    """The names in lower case are those of users."""

    SERIAL = 0
    PARALLEL = 1
    HIGH_TOLERANCE = 2
    LOWER_TOLERANCE = 3
    ECHO = 4


CONTROLLERS = tuple(controller.name.lower() for controller in Controller)


@njit(cache=True, nogil=True)
def redundant(controller: int) -> bool:
    """Whether the processors compute the same and compare it."""
    return controller >= Controller.HIGH_TOLERANCE


@njit(cache=True, nogil=True)
def data_size(controller: int, n: int) -> int:
    """How many data a processor publishes for all to compare."""
    if controller == Controller.HIGH_TOLERANCE:
        return n * n + n
    if controller == Controller.LOWER_TOLERANCE:
        return n
    return n * n + 2 * n


@njit(cache=True, nogil=True)
def compared_size(controller: int, n: int) -> int:
    """How many of the data are compared."""
    return n * n if controller == Controller.HIGH_TOLERANCE else data_size(controller, n)


def element_name(index: int, n: int, controller: str = "echo") -> str:
    """Name of an element of M, N, tau, e.g. ``M[0,2]``; of the diagonal for lower_tolerance."""
    if controller == "lower_tolerance":
        return f"M[{index},{index}]"
    if index < n * n:
        return f"M[{index // n},{index % n}]"
    index -= n * n
    return f"N[{index}]" if index < n else f"tau[{index - n}]"
