"""What those who compile kernels and those who run them agree on."""

__all__ = ["LATER"]

#: Variable of the environment: if it is set, a node loads or compiles the kernels of rarer requests
#: when such a request comes, not at its start.
LATER = "KINSTACK_KERNELS_LATER"
