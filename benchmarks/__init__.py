"""Benchmarks of kinstack, one module per system, behind ``./kinstack bench``."""
