"""Results on disk: one file per piece of work, written whole or not at all, with what it was made from."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from groupowl import __version__
from groupowl._files import write_file

from ..data import FoundDataset, dataset_files
from .plan import Item

#: Goes up whenever old files cannot be read any more, or mean something else.
FORMAT = 2

_WORDS = {
    "format": "the format of stored results",
    "version": "groupowl",
    "data": "the data file",
    "request": "settings",
}


def data_fingerprint(found: FoundDataset) -> str:
    """Size and hash of the files of a data set."""
    digest, size = sha256(), 0
    for path in dataset_files(found.entry, found.path):
        content = path.read_bytes()
        digest.update(content)
        size += len(content)
    return f"{size} bytes, sha256 {digest.hexdigest()[:16]}"


class Store:
    """The folder of stored results.

    Parameters
    ----------
    folder : Path
        Made when the first result is stored.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, item: Item) -> Path:
        """Where the result of a piece of work lies."""
        return self.folder / f"{item.key}.json"

    def clear(self) -> None:
        """Forget all results."""
        for path in self.folder.glob("*.json"):
            path.unlink()
        for path in self.folder.glob(".*.part"):
            path.unlink()

    def write(self, item: Item, fingerprint: dict[str, Any], result: dict[str, Any], elapsed: float) -> None:
        """Store a result with what it was made from and the seconds it took in all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        envelope = {"key": item.key, "made_from": fingerprint, "elapsed": elapsed, "result": result}
        write_file(self.path(item), json.dumps(envelope))

    def read(self, item: Item) -> dict[str, Any] | None:
        """The stored envelope; None where there is none, or where it cannot be read."""
        try:
            envelope = json.loads(self.path(item).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        complete = isinstance(envelope, dict) and {"key", "made_from", "elapsed", "result"} <= set(envelope)
        return envelope if complete and envelope["key"] == item.key else None


def fingerprint(request: dict[str, Any], data: str | None) -> dict[str, Any]:
    """Everything that decides a result, but for the machine."""
    return {"format": FORMAT, "version": __version__, "data": data, "request": request}


def differences(stored: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Words for what two fingerprints differ in."""
    found = []
    for name, word in _WORDS.items():
        if name != "request" and stored.get(name) != wanted[name]:
            found.append(f"{word} ({stored.get(name)}, now {wanted[name]})")
    old, new = stored.get("request") or {}, wanted["request"]
    for name in sorted(set(old) | set(new)):
        if old.get(name) != new.get(name):
            found.append(f"{name} ({old.get(name)}, now {new.get(name)})")
    return found


def refuse_difference(item: Item, stored: dict[str, Any], wanted: dict[str, Any]) -> None:
    """An error if a stored result was made from something else than what would be used now."""
    found = differences(stored, wanted)
    if found:
        raise ValueError(
            f"the stored result {item.key} was made with other input: {'; '.join(found)}. "
            f"Use --restart to begin anew, another --out, or what was used before."
        )
