"""What tests of the command line share."""

import pytest

from cli_support import columns_of, install_report, make_data, run_main, without_progress, write_csv

install_report()


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command line: ``run("fit", path, "--targets", "y1")``."""
    without_progress(monkeypatch)
    return lambda *arguments: run_main(capsys, monkeypatch, *arguments)


@pytest.fixture(scope="session")
def train(tmp_path_factory):
    """A CSV file with ids, groups, weights, 12 features and two targets."""
    return write_csv(tmp_path_factory.mktemp("data") / "train.csv", columns_of(make_data()))


@pytest.fixture
def reports(monkeypatch):
    """Contents of the reports that were written."""
    import groupowl.report

    seen = []
    original = groupowl.report.write_report

    def remember(path, contents):
        seen.append(contents)
        original(path, contents)

    monkeypatch.setattr(groupowl.report, "write_report", remember)
    return seen
