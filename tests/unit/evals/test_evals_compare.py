"""How two commits are compared, and when the comparison fails."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.compare import __main__ as command
from benchmarks.compare.checkouts import Checkout, clone, commit_of, compile_modules
from benchmarks.compare.ratios import ratio
from benchmarks.machine import git
from callslip.errors import EvaluationError, StartError


def rounds(true_ratio: float, noise: float) -> tuple[list[float], list[float]]:
    """Rounds of different load, which both sides share, and noise of the new side alone."""
    load = np.array([1.0, 5.0, 2.0, 4.0, 3.0, 1.0, 6.0, 2.0])
    signs = np.array([1, -1] * 4)
    return list(load), list(load * true_ratio * np.exp(noise * signs))


def test_the_ratio_is_the_geometric_mean_of_the_rounds() -> None:
    found = ratio([1.0, 4.0], [2.0, 2.0])
    assert found.ratio == pytest.approx(1.0)
    assert found.low < 1 < found.high


def test_the_interval_is_students_for_the_mean_of_logarithms() -> None:
    found = ratio([1.0, 1.0, 1.0], [1.0, np.e, np.e**2])
    reach = 4.302653 / np.sqrt(3)  # t with 2 degrees of freedom at .975; deviation 1
    assert np.log([found.low, found.ratio, found.high]) == pytest.approx([1 - reach, 1, 1 + reach])


def test_the_load_that_both_sides_of_a_round_share_is_not_noise() -> None:
    found = ratio(*rounds(1.3, noise=0.02))
    assert found.low == pytest.approx(1.3, rel=0.05)
    assert found.is_loss
    assert found.verdict == "LOSS"


@pytest.mark.parametrize(
    ("true_ratio", "noise", "verdict"),
    [
        (0.7, 0.02, "faster"),
        (1.0, 0.02, "no loss above 15 %"),
        (1.1, 0.01, "no loss above 15 %"),
        (1.15, 0.02, "not certain: more rounds"),
        (1.3, 0.5, "not certain: more rounds"),
    ],
)
def test_only_an_interval_above_the_limit_is_a_loss(
    true_ratio: float, noise: float, verdict: str
) -> None:
    found = ratio(*rounds(true_ratio, noise))
    assert not found.is_loss
    assert found.verdict == verdict


def test_a_false_alarm_at_the_limit_itself_is_rare() -> None:
    chance = np.random.default_rng(11)
    alarms = sum(
        ratio(np.ones(6), 1.15 * np.exp(chance.normal(0, 0.1, 6))).is_loss for _ in range(2000)
    )
    assert alarms / 2000 == pytest.approx(0.025, abs=0.01)


@pytest.mark.parametrize("figure", [0.0, -1.0, math.nan])
def test_a_figure_that_was_not_measured_is_refused(figure: float) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        ratio([1.0, 1.0], [1.0, figure])


def test_one_round_has_no_interval() -> None:
    with pytest.raises(ValueError, match="two rounds"):
        ratio([1.0], [1.0])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    git(root, "init", "--quiet")
    git(root, "config", "user.name", "test")
    git(root, "config", "user.email", "test@localhost")
    (root / "speed").write_text("fast")
    git(root, "add", "speed")
    git(root, "commit", "--quiet", "--message", "first")
    return root


def test_a_checkout_is_compared_with_its_changes(repository: Path, tmp_path: Path) -> None:
    clean = commit_of(None, repository)
    assert clean == commit_of("HEAD", repository)
    (repository / "speed").write_text("slow")
    changed = commit_of(None, repository)
    for name, commit, text in (("old", clean, "fast"), ("new", changed, "slow")):
        clone(commit, tmp_path / name, repository)
        assert (tmp_path / name / "speed").read_text() == text
    assert git(repository, "status", "--porcelain") == "M speed"
    assert git(repository, "worktree", "list").count("\n") == 0


def test_files_of_libraries_that_are_no_modules_do_not_stop_a_comparison(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "template.py").write_text("{{ name }} = ")
    (tmp_path / "module.py").write_text("name = 1")
    compile_modules(Checkout("", tmp_path, sys.executable))
    assert list(tmp_path.glob("__pycache__/module.*.pyc"))


def test_an_unknown_commit_is_refused(repository: Path) -> None:
    with pytest.raises(EvaluationError, match="no commit 'nowhere'"):
        commit_of("nowhere", repository)


@pytest.mark.long
@pytest.mark.parametrize(("slower", "code"), [(1.0, None), (1.05, None), (1.5, "memory: MB")])
def test_the_command_fails_after_a_loss_alone(
    slower: float,
    code: str | None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    order = []

    def measured(checkout: Checkout, *_: object) -> dict[str, float]:
        order.append(checkout.commit)
        return {"memory: MB": (slower if checkout.commit == "new" else 1.0) + len(order) / 1000}

    monkeypatch.setattr(command, "commit_of", lambda revision: revision)
    monkeypatch.setattr(command, "prepare", lambda commit, folder: Checkout(commit, folder, ""))
    monkeypatch.setattr(command, "measure", measured)
    monkeypatch.setattr(sys, "argv", ["compare", "old", "new", "--rounds", "4"])
    if code is None:
        command.main()
    else:
        with pytest.raises(SystemExit, match=code):
            command.main()
    assert order == ["old", "new", "new", "old"] * 2
    assert "| memory: MB |" in capsys.readouterr().out


@pytest.mark.long
def test_a_stack_that_does_not_start_in_time_is_started_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tries = []

    def measured(*_: object) -> dict[str, float]:
        tries.append(1)
        if len(tries) in (1, 4, 5):
            raise StartError("not ready")
        return {"memory: MB": 1.0}

    monkeypatch.setattr(command, "commit_of", lambda revision: revision)
    monkeypatch.setattr(command, "prepare", lambda commit, folder: Checkout(commit, folder, ""))
    monkeypatch.setattr(command, "measure", measured)
    monkeypatch.setattr(sys, "argv", ["compare", "old", "new", "--rounds", "2"])
    command.main()
    assert "Once more: not ready" in capsys.readouterr().err
    assert len(tries) == 7  # four measurements, three failures


def test_a_comparison_that_fails_is_no_loss(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["compare", "no-such-commit"])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2
    assert "git knows no commit 'no-such-commit'" in capsys.readouterr().err
