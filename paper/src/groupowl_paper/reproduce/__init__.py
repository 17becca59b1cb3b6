"""The paper's experiments as a program: data sets, settings, algorithms, Figures 1 to 4, and groupowl beside them.

:class:`Campaign` does the work and returns :class:`Results`; :func:`report_markdown` and :func:`result_figures` show
them; :func:`write_outputs` writes everything to a folder.
"""

from .checks import refuted
from .figures import result_figures
from .locks import BusyError
from .outputs import write_outputs
from .report import report_markdown
from .results import Results
from .run import Campaign, ProgressHook, State
from .settings import Options, quick_options
from .spreadsheet import results_csv

__all__ = [
    "BusyError",
    "Campaign",
    "Options",
    "ProgressHook",
    "Results",
    "State",
    "quick_options",
    "refuted",
    "report_markdown",
    "result_figures",
    "results_csv",
    "write_outputs",
]
