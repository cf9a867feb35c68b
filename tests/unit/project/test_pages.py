"""Links and paths that the pages name lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGES.md", "examples/README.md", "jobs/README.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]


def anchor(heading: str) -> str:
    """The anchor that Markdown viewers make of a heading."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    return {anchor(heading) for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    wrong = []
    for link in re.finditer(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)", page.read_text(encoding="utf-8")):
        target = page.parent / link[1] if link[1] else page
        if not target.exists():
            wrong.append(f"{link[0]}: no such file")
        elif link[2] and target.suffix == ".md" and link[2] not in anchors(target):
            wrong.append(f"{link[0]}: no such heading")
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_module_and_folder_that_a_page_names_exists(page: Path) -> None:
    ours = {path.name for path in ROOT.iterdir() if path.is_dir()} - {"var"}  # made at run time
    tops = "|".join(sorted(ours))
    named = re.findall(rf"`((?:{tops})/[\w./-]*)`", page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_measurement_and_generator_that_a_page_names_can_be_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"python -m ((?:benchmarks|tools)\.[a-z_.]+)", text):
        path = ROOT / name.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_request_of_a_page_to_the_server_sends_a_key(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    key = 'KEY="Authorization: Bearer $(cat var/admin.key)"'
    if page.name == "compat-annotator.md":  # `serve-annotator` needs none
        assert key.removeprefix("KEY=") in text
        return
    blocks = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).replace("\\\n", "")
    lines = [line for line in blocks.splitlines() if re.search(r"curl .*(:8765|\$URL)", line)]
    assert [line for line in lines if '-H "$KEY"' not in line] == []
    assert not lines or blocks.index(key) < blocks.index("curl ")
    for client in re.findall(r'Client\("http://127.0.0.1:8765".*', text):
        assert "key=" in client


def test_the_table_of_the_architecture_leads_to_the_code_in_two_hops() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.split("## Where to find what", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (Where [^|]+) \| ([\w/]+) \| `([^`]+)`", section, re.M)
    assert len(rows) >= 12
    for question, folder, first in rows:
        assert (ROOT / folder).is_dir(), question
        assert (ROOT / first).exists(), question
