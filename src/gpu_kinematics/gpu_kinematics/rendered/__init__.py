"""Rendered from kernels.py by render.py; do not edit: python -m gpu_kinematics.render."""
