"""One page about a run: a self-contained HTML file that needs no network and no server.

The pictures are drawn in the browser by a few small scripts of our own that the file carries with it. Without scripts
the facts, the scores, the table of selected features and the certificate are still there to read. Making a page needs
Jinja, which the extra ``cli`` brings.
"""

from .contents import ReportContents
from .page import render_report, write_report
from .selection_page import SelectionContents, write_selection_report

__all__ = ["ReportContents", "SelectionContents", "render_report", "write_report", "write_selection_report"]
