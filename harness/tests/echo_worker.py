"""A worker for tests: it does what it is told."""

import os
import sys
import time

from groupowl_harness.serving import serve_parent


def answer(request):
    if request["do"] == "wait":
        time.sleep(request["seconds"])
    if request["do"] == "work":
        end = time.process_time() + request["seconds"]
        while time.process_time() < end:
            pass
    if request["do"] == "fail":
        raise ValueError("no\n  such thing")
    if request["do"] == "die":
        print("MemoryError: no room\n", file=sys.stderr, flush=True)
        os._exit(3)
    print("noise of a library")
    return {"arguments": sys.argv[2:], "threads": os.environ["OMP_NUM_THREADS"], "folder": os.getcwd(), **request}


if __name__ == "__main__":
    serve_parent(answer)
