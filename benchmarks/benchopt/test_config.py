"""What ``benchopt test`` leaves out, and why."""

import pytest
from benchopt.config import get_data_path


def check_test_dataset_get_data(dataset):
    """The data sets of the paper are not part of the benchmark."""
    if dataset.name == "files" and not get_data_path("group_owl").exists():
        pytest.skip("no folder of data sets: see README.md")
