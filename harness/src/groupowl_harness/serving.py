"""The worker's side of a worker process: requests come as JSON lines, and so do the replies."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

#: Answers a request with a reply, both as JSON has them.
Answer = Callable[[dict[str, Any]], dict[str, Any]]


def serve(answer: Answer, requests: Iterable[str], replies: IO[str]) -> None:
    """Answer requests until there are no more; an error is a reply as well, with the place in the code."""
    for line in requests:
        try:
            reply = answer(json.loads(line))
        except Exception as error:  # whatever went wrong belongs to this request, not to the others
            problem = " ".join(str(error).split())[:300]
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            reply = {"error": f"{type(error).__name__}: {problem}", "where": where}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


def serve_parent(answer: Answer) -> None:
    """Serve the process that started this one, whose number is ``sys.argv[1]``; it ends this one, not the keyboard."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if os.name == "posix":
        threading.Thread(target=_end_with, args=(int(sys.argv[1]),), daemon=True).start()
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not mix with the replies
    serve(answer, sys.stdin, replies)


def _end_with(parent: int) -> None:
    """End this process, whatever it is doing, once its parent is gone; then nobody waits for the answer."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
