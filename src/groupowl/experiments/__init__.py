"""Experiments that the command line runs; each returns data and prints nothing."""
