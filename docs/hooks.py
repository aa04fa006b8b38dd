"""Lets the pages link to files of the repository: checks that they are there, shows them as paths.

Read on its own, ``[node.py](../src/hier_ik/hier_ik/node.py)`` opens the file. The built site holds
no source, so there the link becomes its text; a link to a file that does not exist is an error.
"""

import logging
import re
from pathlib import Path

log = logging.getLogger("mkdocs.hooks.repository")

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown, page, **_):
    """Replace links that leave docs/."""
    here = (ROOT / "docs" / page.file.src_path).parent

    def replace(match):
        text, target = match[1], match[2]
        if "://" in target or target.startswith("mailto:"):
            return match[0]
        path = (here / target).resolve()
        if path.is_relative_to(ROOT / "docs"):
            return match[0]
        if not path.exists():
            log.warning("%s links to %s, which does not exist", page.file.src_path, target)
        return text if text.startswith("`") else f"{text} (`{path.relative_to(ROOT)}`)"

    # Code is left alone.
    parts = re.split(r"(```.*?```|`[^`\n]+`(?!\]))", markdown, flags=re.DOTALL)
    return "".join(part if i % 2 else _LINK.sub(replace, part) for i, part in enumerate(parts))
