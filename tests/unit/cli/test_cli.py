"""The command line: every command teaches, and errors say what to do."""

import inspect
import json
import os
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from callslip.cli import entry
from callslip.cli.commands.collections import transfer
from callslip.cli.commands.installation import backup
from callslip.cli.commands.search import search
from callslip.cli.main import COMMANDS, main
from callslip.cli.shared import installation, upload
from callslip.cli.shared.conditions import condition, conditions
from callslip.cli.shared.paths import find_files
from callslip.cli.shared.patience import Turn
from callslip.client import Client
from callslip.config.settings import Settings
from callslip.errors import PermanentError, SettingsError, ThreadNotFound
from callslip.stores.backup.restoring import Restored
from callslip.stores.transfer.reports import Report

HOW_DO_I = Path(__file__).parents[3] / "docs" / "how-do-i.md"
README = Path(__file__).parents[3] / "README.md"


def _commands() -> dict[str, click.Command]:
    return {name: lazy.load() for name, lazy in COMMANDS.items()}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_shows_an_example(name: str) -> None:
    shown = CliRunner().invoke(main, [name, "--help"])
    assert shown.exit_code == 0
    assert f"callslip {name}" in shown.output


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_the_list_of_commands_says_what_their_help_says(name: str) -> None:
    command = COMMANDS[name].load()
    assert command.name == name
    first = inspect.cleandoc(command.help or "").split("\n\n")[0]
    assert COMMANDS[name].summary == first.replace("\n", " ")


def test_the_list_of_commands_is_the_one_that_click_writes() -> None:
    eager = click.Group(commands=_commands())
    lists = []
    for group in (main, eager):
        formatter = click.HelpFormatter(width=78)
        group.format_commands(click.Context(group), formatter)
        lists.append(formatter.getvalue())
    assert lists[0] == lists[1]


@pytest.mark.parametrize(
    "name",
    [
        *("up", "ingest", "status", "search", "audit", "doctor", "config", "eval"),
        *("export", "import", "migrate", "options", "retry", "versions", "rollback", "usage"),
        *("compare", "ingest-faq"),
    ],
)
def test_every_command_that_answers_can_answer_in_json(name: str) -> None:
    assert "--json" in CliRunner().invoke(main, [name, "--help"]).output


def test_without_the_server_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing(_: str) -> None:
        raise ModuleNotFoundError("No module named 'click'", name="click")

    monkeypatch.setattr(entry, "import_module", missing)
    with pytest.raises(SystemExit) as ended:
        entry.main()
    advice = "need click, install them: pip install '/path/to/callslip[server]'"
    assert str(ended.value).endswith(advice)


@pytest.mark.parametrize(("name", "words"), [("edit", "drops it"), ("ingest", "edit` set")])
def test_the_help_says_that_another_content_drops_what_an_edit_set(name: str, words: str) -> None:
    shown = " ".join(CliRunner().invoke(main, [name, "--help"]).output.split())
    assert words in shown
    assert "-p" in shown
    assert "what `callslip edit` or an earlier `-p` set is dropped" in " ".join(
        HOW_DO_I.read_text(encoding="utf-8").split()
    )


def test_the_help_of_import_says_that_it_makes_no_second_copy() -> None:
    shown = " ".join(CliRunner().invoke(main, ["import", "--help"]).output.split())
    assert "Not for a second copy in the installation that has it." in shown
    assert "`callslip delete -c NAME --all`" in shown


NESTED = [
    (group, name)
    for group, command in _commands().items()
    if isinstance(command, click.Group)
    for name in command.commands
]


@pytest.mark.parametrize(("group", "name"), NESTED)
def test_every_command_of_a_group_shows_an_example_and_answers_in_json(
    group: str, name: str
) -> None:
    shown = CliRunner().invoke(main, [group, name, "--help"])
    assert shown.exit_code == 0
    assert f"Example:  callslip {group} {name}" in shown.output
    assert "--json" in shown.output


@pytest.mark.parametrize(
    "arguments", [["chunk"], ["--json", "chunk"], ["./chunk"], ["-c", "x", "sectionize"]]
)
def test_only_a_first_word_that_names_a_step_is_no_file(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(main, ["ingest", *arguments])
    is_step = arguments[0] == "chunk"
    assert ("Missing option '--doc-id'" in shown.output) == is_step
    assert ("names no file" in shown.output) != is_step


def test_a_cut_is_applied_only_where_its_lengths_are_named() -> None:
    given = ["ingest", "chunk", "--doc-id", "x", "--url", "http://127.0.0.1:9"]
    shown = CliRunner().invoke(main, [*given, "--apply"])
    assert "--apply goes with --maxlen or --overlap" in shown.output
    shown = CliRunner().invoke(main, [*given, *["--maxlen", "900", "--overlap", "80"]])
    assert "no answer from" in shown.output


def test_wrong_dates_of_a_source_are_refused_before_the_server_is_asked(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    given = ["--path", str(tmp_path / "a.txt"), "--valid-from", "2026-07-01"]
    shown = CliRunner().invoke(
        main, ["ingest", "register-source", *given, "--valid-to", "2026-01-01"]
    )
    assert shown.exit_code == 1
    assert "valid_to 2026-01-01 is not after valid_from 2026-07-01" in shown.output


def test_every_command_of_the_readme_exists() -> None:
    report = README.read_text() + HOW_DO_I.read_text()
    named = {line.split()[1] for line in report.splitlines() if line.startswith("callslip ")}
    assert named <= set(COMMANDS)


def test_a_server_that_is_down_is_an_error_with_advice() -> None:
    shown = CliRunner().invoke(main, ["search", "x", "--url", "http://127.0.0.1:9"])
    assert shown.exit_code == 1
    assert "no answer from http://127.0.0.1:9: it cannot be reached (conn" in shown.output
    assert "callslip up" in shown.output


def test_an_unknown_command_is_an_error_that_names_a_similar_one() -> None:
    shown = CliRunner().invoke(main, ["serch", "x"])
    assert shown.exit_code == 2
    assert "No such command 'serch'. Did you mean 'search'?" in shown.output
    assert "Did you mean" not in CliRunner().invoke(main, ["xyz"]).output


def test_config_prints_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSLIP_SEARCH__ALPHA", "0.5")
    shown = CliRunner().invoke(main, ["config", "--json"])
    lines = {line["key"]: line for line in json.loads(shown.stdout)}
    assert lines["search.alpha"]["value"] == "0.5"
    assert lines["search.alpha"]["origin"] == "CALLSLIP_SEARCH__ALPHA"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("doc_type=policy", ("doc_type", "policy")),
        ("year=2024", ("year", 2024)),
        ("year >=2024", ("year >=", 2024)),
        ("year>=2024", ("year >=", 2024)),
        ("year != 2024", ("year !=", 2024)),
        ("year>2024", ("year >", 2024)),
        ("name ~ 휴가*", ("name ~", "휴가*")),
        ("lang in=en, ko", ("lang in", ["en", "ko"])),
        ("tags @=leave", ("tags @", "leave")),
        ("open=true", ("open", True)),
        ("url=http://x/?a=b", ("url", "http://x/?a=b")),
        ('kind in=["a", "b"]', ("kind in", ["a", "b"])),
        ("year in=2018,2019", ("year in", [2018, 2019])),
        ("year not-in=2018", ("year not-in", [2018])),
        ("tags contains=a", ("tags contains", ["a"])),
        ('title=">x"', ("title", ">x")),
    ],
)
def test_a_condition_is_key_operator_and_value(given: str, expected: tuple[str, object]) -> None:
    assert condition(given) == expected


@pytest.mark.parametrize("given", ["", "x", "=1", "year=>2024", "title~=*x*"])
def test_a_condition_without_a_key_or_with_a_mistaken_sign_is_refused(given: str) -> None:
    with pytest.raises(click.BadParameter):
        condition(given)


def test_two_conditions_of_one_key_are_refused() -> None:
    assert conditions(["year>=2018", "year<2020"]) == {"year >=": 2018, "year <": 2020}
    with pytest.raises(click.BadParameter, match="stands twice"):
        conditions(["kind=law", "kind=policy"])


def test_files_are_found_by_path_folder_and_glob_each_once(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("a/one.md", "a/two.txt", "a/.hidden", "three.md"):
        (tmp_path / name).write_text(name)
    given = [str(tmp_path / "a"), str(tmp_path / "*.md"), str(tmp_path / "a" / "one.md")]
    assert [s.name for s in find_files(given)] == ["one.md", "two.txt", "three.md"]


def test_a_folder_has_its_files_in_order_and_no_linked_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("in/b.md", "in/a/z.md", "in/a.md", "in/.git/c.md", "out/d.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    folder = tmp_path / "in"
    (folder / "linked").symlink_to(tmp_path / "out")
    (folder / "loop").symlink_to(folder)
    (folder / "same.md").symlink_to(folder / "b.md")
    (folder / "other.md").symlink_to(tmp_path / "out" / "d.md")
    (folder / "gone.md").symlink_to(tmp_path / "none")
    os.mkfifo(folder / "pipe")
    sources = find_files([str(folder), str(tmp_path / "out")])
    assert [s.name for s in sources] == ["a/z.md", "a.md", "b.md", "other.md"]
    assert [s.path for s in sources] == [folder / s.name for s in sources]
    assert capsys.readouterr().err == "Skipped: 1 broken link, 2 linked folders, 1 special file\n"
    assert [s.name for s in find_files([str(folder / "*.md"), str(folder / "a.md")])] == [
        "a.md",
        "b.md",
        "other.md",
    ]
    assert capsys.readouterr().err == "Skipped: 1 broken link\n"


def test_a_name_that_is_too_long_names_no_file() -> None:
    with pytest.raises(PermanentError, match="names no file"):
        find_files(["a" * 5000])


def test_a_link_that_may_not_be_followed_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ok.md").write_text("ok")
    (tmp_path / "closed.md").symlink_to(tmp_path / "closed" / "a.md")
    follow = os.stat

    def refuse(path: Any, *arguments: Any, **more: Any) -> os.stat_result:
        if str(path).endswith("closed.md"):
            raise PermissionError(13, "Permission denied", str(path))
        return follow(path, *arguments, **more)

    monkeypatch.setattr(os, "stat", refuse)
    assert [source.name for source in find_files([str(tmp_path)])] == ["ok.md"]
    assert capsys.readouterr().err == "Skipped: 1 broken link\n"


def test_files_of_a_glob_are_known_by_their_paths_below_its_folder(tmp_path: Path) -> None:
    for name in ("a/x.md", "b/x.md"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name)
    assert [s.name for s in find_files([str(tmp_path / "*" / "x.md")])] == ["a/x.md", "b/x.md"]
    with pytest.raises(PermanentError, match=r"would both be known as 'x\.md'"):
        find_files([str(tmp_path / "a" / "x.md"), str(tmp_path / "b" / "x.md")])


def test_a_missing_conversation_says_how_one_begins() -> None:
    assert "--thread NAME" in ThreadNotFound("x").advice


@pytest.mark.parametrize("told", ["import", "restore"])
def test_the_figures_of_probes_name_their_sides(
    told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    probes = {"vector": {"probes": 3, "same_first": 1.0, "itself_first": [1.0, 0.9]}}
    if told == "import":
        report = Report("main", 3, 9, 0.5, probes=probes)
        transfer._tell(report, "main is here", json_out=False)
    else:
        restored = Restored("2026", 0.0, probes={"main": probes})
        backup._tell_restored(restored, json_out=False, verify=False)
    line = "probes 3, same_first 1, itself_first 1 before, 0.9 now\n"
    assert capsys.readouterr().out.endswith(line)


def test_the_bonus_for_facets_is_named_so() -> None:
    reasons = {"parts": {"fused": 0.5, "prior": 0.1}, "rank_of_legs": 2, "rank_of_content": 3}
    assert search._parts(reasons).startswith("= fused 0.500 + facets 0.100; #2 by the retrievers")


def test_the_progress_bar_grows_with_the_files_within_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch = {"submitted": 5, "states": {"live": 4, "working": 1}, "left": 1}
    monkeypatch.setattr(upload, "get_batch", lambda *_: batch)
    monkeypatch.setattr(upload, "pace", lambda _: "")
    with Client("http://127.0.0.1:9") as client:
        turn = Turn(client, "main", "", shown=False)
        progress = upload._Progress(client, upload.Report(), files=2, show=False, turn=turn)
        with progress:
            assert progress.look()
        assert (progress._bar.pos, progress._bar.length) == (4, 4)


def test_a_path_that_names_no_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="names no file"):
        find_files([str(tmp_path / "nothing")])


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("empty", "is empty or has only hidden files"),
        ("hid", "is empty or has only hidden files"),
        ("odd", "has only 1 special file"),
        ("gone.md", "is a broken link"),
        ("odd/pipe", "is a special file"),
    ],
)
def test_a_path_without_files_says_what_it_is(tmp_path: Path, name: str, what: str) -> None:
    for folder in ("empty", "hid", "odd"):
        (tmp_path / folder).mkdir()
    (tmp_path / "hid" / ".x.md").touch()
    os.mkfifo(tmp_path / "odd" / "pipe")
    (tmp_path / "gone.md").symlink_to(tmp_path / "none")
    with pytest.raises(PermanentError) as raised:
        find_files([str(tmp_path / name)])
    assert raised.value.detail == f"{str(tmp_path / name)!r} {what}"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["ingest", "a.md", ""], "PATHS..."),
        (["source", "add", "law", ""], "ADDRESS"),
        (["attach", "chroma", "", "faq"], "WHERE"),
        (["backup", ""], "[DESTINATION]"),
        (["restore", ""], "[DESTINATION]"),
        (["purge", "--user", "ann", "--yes", "--backups", ""], "--backups"),
    ],
)
def test_an_empty_path_is_no_folder_and_no_default(arguments: list[str], named: str) -> None:
    shown = CliRunner().invoke(main, arguments)
    assert shown.exit_code == 2
    assert f"Invalid value for '{named}': the text is empty; is a variable not set?" in shown.output


def test_the_data_folder_is_no_destination_of_backups(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    (tmp_path / "here").symlink_to(tmp_path)
    for url in (str(tmp_path), str(tmp_path / "here"), f"{tmp_path}/../{tmp_path.name}"):
        with pytest.raises(SettingsError, match="is the data folder of Callslip itself"):
            installation.open_destination(settings, url, None, make=True)
