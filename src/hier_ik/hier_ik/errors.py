"""The errors of this package; each maps to one status code of the interfaces."""

from __future__ import annotations

from kin_core.errors import InvalidInput, KinError

__all__ = ["HierError", "LinkageError"]


class HierError(KinError):
    """Root of the errors of hier_ik."""


class LinkageError(HierError, InvalidInput):
    """A linkage that breaks a rule.

    Attributes:
        element: The joint, link, sublinkage or goal that breaks it.
        rule: Which rule, in one word or two.
    """

    def __init__(self, element: str, problem: str, *, rule: str = "") -> None:
        InvalidInput.__init__(self, element, problem)
        self.element = element
        self.rule = rule
