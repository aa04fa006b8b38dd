"""Cuik: every solution of a closed mechanism, with certificates."""
