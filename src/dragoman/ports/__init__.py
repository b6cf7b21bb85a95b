"""Interfaces with two implementations here, or named by the specification."""
