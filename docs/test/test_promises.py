"""Every sentence of the documentation that promises without exception names the test behind it.

A sentence promises when it uses one of `WORDS`. Headings, code and what has fewer than three words
are no sentences. docs/promises.md has a section for each page, headed by its path, with one table:

    | claim | shown by | cases | date |

- claim: three words or more of the sentence, to the letter (white space and Markdown marks aside).
  A row is for every sentence of the page that contains them; a row that is for none is stale.
- shown by: `path/of/test_file.py::test_name`, several separated by `<br>`; a benchmark may stand
  beside them (`bench cuik`), not alone.
- cases: how many, and of what. date: when they were last run, YYYY-MM-DD.
"""

import ast
import datetime
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LEDGER = ROOT / "docs" / "promises.md"
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").glob("*.md")) if page != LEDGER),
]
WORDS = re.compile(
    r"\b(all|none|never|always|complete|completely|certified|masked|bounded|proven|guaranteed|fastest)\b",
    re.IGNORECASE,
)
TEST = re.compile(r"^(?P<path>[\w./]+\.py)::(?P<name>test_\w+)$")
BENCH = re.compile(r"^bench (?P<name>\w+)$")


def name_of(path):
    return str(path.relative_to(ROOT))


def plain(text):
    """Text without Markdown marks, with single spaces."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"\s+", " ", re.sub(r"[`*]", "", text)).strip()


def sentences(page):
    """The sentences of a page: of its prose, its list items and the cells of its tables."""
    text = re.sub(r"^(```|~~~).*?^\1", "\n\n", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^ {4,}.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^#+ .*$", "", text, flags=re.MULTILINE)
    pieces = re.split(r"\n\s*\n|\||^\s*(?:[-*]|\d+\.) ", text, flags=re.MULTILINE)
    found = (s for piece in pieces for s in re.split(r"(?<=[.!?])\s+", plain(piece)))
    return [sentence for sentence in found if len(sentence.split()) >= 3]


def promises(page):
    return [sentence for sentence in sentences(page) if WORDS.search(sentence)]


def read_ledger():
    """The rows of docs/promises.md by the page that their section names."""
    rows: dict[str, list[list[str]]] = {}
    section = None
    for line in LEDGER.read_text().splitlines():
        if line.startswith("## "):
            section = line[3:].strip()
            assert section not in rows, f"{section} has two sections"
            rows[section] = []
        elif line.startswith("|") and section is not None:
            cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if cells[0] != "claim" and not set(cells[0]) <= set("-: "):
                assert len(cells) == 4, f"not four cells: {line}"
                rows[section].append(cells)
    return rows


@cache
def functions_of(path):
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_section_is_of_a_page():
    assert set(read_ledger()) <= {name_of(page) for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_promise_has_its_row(page):
    rows = read_ledger().get(name_of(page), [])
    claims = [plain(row[0]) for row in rows]
    short = [claim for claim in claims if len(claim.split()) < 3]
    assert not short, f"fewer than three words: {short}"
    said = promises(page)
    bare = [sentence for sentence in said if not any(claim in sentence for claim in claims)]
    assert not bare, f"{len(bare)} promises without a row:\n- " + "\n- ".join(bare)
    stale = [claim for claim in claims if not any(claim in sentence for sentence in said)]
    assert not stale, f"{len(stale)} rows for no promise:\n- " + "\n- ".join(stale)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_row_names_tests_that_exist(page):
    for claim, shown_by, cases, date in read_ledger().get(name_of(page), []):
        named = [plain_name.strip().strip("`") for plain_name in shown_by.split("<br>")]
        tests = [match for name in named if (match := TEST.match(name))]
        assert tests, f"{claim}: no test named"
        for name in named:
            bench = BENCH.match(name)
            if bench:
                assert (ROOT / "benchmarks" / f"bench_{bench['name']}.py").is_file(), name
            else:
                assert TEST.match(name), f"{claim}: {name} is neither a test nor a benchmark"
        for test in tests:
            assert (ROOT / test["path"]).is_file(), f"{claim}: no file {test['path']}"
            assert test["name"] in functions_of(test["path"]), f"{claim}: no test {test['name']}"
        assert re.search(r"\w", cases), f"{claim}: no number of cases"
        assert datetime.date.fromisoformat(date)


def test_words_are_found_in_prose_lists_and_tables(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# All headings\n\nNothing is lost. It is *never*\nlate; see [all](x.md).\n\n"
        "- none of it here\n\n| all | masked at once |\n|---|---|\n\n"
        "    all code\n\n```\nnever\n```\n"
    )
    assert promises(page) == ["It is never late; see all.", "none of it here", "masked at once"]
