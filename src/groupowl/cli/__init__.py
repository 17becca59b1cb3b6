"""The command line: ``groupowl fit``, ``path``, ``cv``, ``predict``, ``verify``, ``select``, ``convert``, ``demo``.

``reproduce`` is found by its entry point: the paper's experiments are a project of their own.

Typer, Rich, pandas, pyarrow, Jinja and Matplotlib come with the extra ``cli``. Without them this module still imports,
and :func:`main` says what to install. :mod:`groupowl.cli.commands` has the application; a command is a function under
its ``@command(example=...)``.

Exit codes: 0 done; 1 something is wrong with the input, or an answer does not hold; 2 the command line itself is wrong;
3 a fit has not converged (what there is was written); 130 stopped by Ctrl-C.
"""

import sys
from contextlib import suppress
from importlib.util import find_spec

from .. import __version__
from .messages import Failure, prepare_streams, printing, tell

_NEEDED = ("typer", "rich", "matplotlib", "pandas", "pyarrow", "jinja2")


def main() -> None:
    """Entry point of the command ``groupowl``."""
    prepare_streams()
    code = 0  # also where nobody reads to the end
    try:
        with printing():
            code = _run(sys.argv[1:])
    except Failure as failure:
        tell(str(failure))
        code = failure.code
    raise SystemExit(code)


def _run(given: list[str]) -> int:
    if given[:1] == ["--version"]:  # asked by scripts, and answered before all the rest is loaded
        print(f"groupowl {__version__}")
        return 0
    for name in _NEEDED:
        with suppress(ImportError):
            if find_spec(name) is not None:
                continue
        tell(f'the command line needs {name}; run: pip install "groupowl[cli]"')
        return 1
    from .commands import run  # which takes a second, in which Ctrl-C ends it quietly

    return run(given)
