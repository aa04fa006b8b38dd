"""Fixtures for all tests."""

pytest_plugins = ["kin_common.testing"]
