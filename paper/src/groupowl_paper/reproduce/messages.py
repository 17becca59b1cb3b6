"""Messages for a report that others may read: names of files, never where they lie."""

from __future__ import annotations

import re
from pathlib import Path

# An absolute path up to its last separator, outside web addresses and words joined by a slash.
_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?[/\\](?:[^/\\\s'\"]+[/\\])*")


def without_folders(message: str, folder: Path | None = None) -> str:
    """The message with names of files alone; ``folder`` may hold spaces, others are recognized where they do not."""
    if folder is not None:
        for known in {str(folder), str(folder.absolute()), str(folder.resolve())} - {"."}:
            message = message.replace(f"{known}/", "").replace(f"{known}\\", "").replace(known, "the data folder")
    return _FOLDERS.sub("", message)
