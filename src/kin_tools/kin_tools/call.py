"""``python -m kin_tools.call``: call a service of a running stack."""

from __future__ import annotations

import kin_core.interrupts  # isort: skip  # noqa: F401 (before all else)
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kin_core.errors import InvalidInput, KinError
from kin_core.yamls import LIMIT_BYTES, load_yaml
from kin_tools.options import call_parser

__all__ = ["main"]

_SERVICE = re.compile(r"/?[A-Za-z_][A-Za-z0-9_]*(/[A-Za-z_][A-Za-z0-9_]*)*\Z")


def _read_request(text: str) -> Any:
    if text == "-":
        return load_yaml(sys.stdin.read(), name="standard input", longest_word=LIMIT_BYTES)
    if text.startswith("@"):
        return load_yaml(Path(text[1:]), longest_word=LIMIT_BYTES)
    return load_yaml(text, name="request", longest_word=LIMIT_BYTES)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command."""
    options = call_parser().parse_args(argv)
    from kin_ros.messages import fill, find_type, show

    try:
        if not _SERVICE.match(options.service):
            raise InvalidInput("", f"'{options.service}' cannot be the name of a service")
        kind = find_type(options.type, "srv")
        request = fill(kind.Request(), _read_request(options.request))
    except InvalidInput as error:
        print(f"call: {error}", file=sys.stderr)
        return 2
    from kin_ros.client import open_client

    service = "/" + options.service.lstrip("/")
    try:
        with open_client("call") as client:
            response = client.call(
                service, kind, request, wait=options.wait, timeout=options.timeout
            )
    except KinError as error:
        print(f"call: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("call: interrupted", file=sys.stderr)
        return 130
    print(show(response, full=options.full))
    from kin_ros.status import outcome_of

    outcome = outcome_of(response)
    if not outcome.good:
        print(f"call: {outcome.name}: {outcome.message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
