"""Loading, explaining and documenting the settings."""

import os
from functools import reduce
from pathlib import Path
from unittest.mock import patch

import pytest
from pydantic import SecretStr

from callslip.config import Loaded, describe, environment, get_settings, masked
from callslip.config import load as load_in_force
from callslip.config.keys import KEYS, accepts, values, variable
from callslip.errors import SettingsError
from tools.settings_page import reference

ROOT = Path(__file__).resolve().parents[3]


def write(folder: Path, text: str) -> Path:
    path = folder / "callslip.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def load(environ: dict[str, str], folder: Path) -> Loaded:
    """What is in force with these variables, and no others, and the file in `folder`."""
    with patch.dict(os.environ, environ, clear=True):
        return load_in_force(folder)


def complaint(folder: Path, yaml: str = "", **environ: str) -> str:
    """What loading says, with the folder cut out of it."""
    write(folder, yaml)
    with pytest.raises(SettingsError) as caught:
        load(environ, folder)
    return str(caught.value).replace(f"{folder}/", "")


def test_without_any_source_every_setting_has_its_default(tmp_path):
    loaded = load({}, tmp_path)
    assert loaded.settings.api.port == 8765
    assert set(loaded.origins) == set(KEYS)
    assert set(loaded.origins.values()) == {"default"}


def test_yaml_wins_over_defaults_and_the_environment_over_both(tmp_path):
    path = write(tmp_path, "api:\n  port: 8080\n  threads: 8\n")
    loaded = load({"CALLSLIP_API__PORT": "9090"}, tmp_path)
    assert (loaded.settings.api.port, loaded.settings.api.threads) == (9090, 8)
    assert loaded.origins["api.port"] == "CALLSLIP_API__PORT"
    assert loaded.origins["api.threads"] == f"{path}:3"
    assert loaded.origins["api.host"] == "default"


def test_the_file_is_found_in_the_working_directory(tmp_path, monkeypatch):
    write(tmp_path, "search:\n  top: 7\n")
    monkeypatch.chdir(tmp_path)
    loaded = load({}, Path())
    assert loaded.settings.search.top == 7
    assert loaded.origins["search.top"] == "callslip.yaml:2"


def test_callslip_config_names_another_file(tmp_path):
    write(tmp_path, "search: {top: 7}")
    other = tmp_path / "other.yaml"
    other.write_text("search: {top: 9}", encoding="utf-8")
    assert load({"CALLSLIP_CONFIG": str(other)}, tmp_path).settings.search.top == 9


def test_callslip_config_naming_a_missing_file_is_an_error(tmp_path):
    assert complaint(tmp_path, CALLSLIP_CONFIG="gone.yaml") == (
        "CALLSLIP_CONFIG names gone.yaml, and there is no such file"
    )


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "api:\n", "api:\n  # port: 80\n", "~"])
def test_a_file_without_settings_changes_nothing(tmp_path, text):
    write(tmp_path, text)
    assert load({}, tmp_path).settings == load({}, tmp_path / "nowhere").settings


def test_a_dotted_key_in_yaml_is_the_same_setting(tmp_path):
    write(tmp_path, "api.port: 8080\n")
    assert load({}, tmp_path).settings.api.port == 8080


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("api:\n  port: 1\n port: 2\n", "callslip.yaml:3: this is not YAML: "),
        ("api: [1\n", "callslip.yaml:2: this is not YAML: "),
        ("api:\n\tport: 1\n", "callslip.yaml:2: this is not YAML: "),
        ("api:\n  host: a\x07b\n", "callslip.yaml:2: this is not YAML: "),
        ("a: 1\n---\nb: 2\n", "callslip.yaml:2: this is not YAML: "),
        ("- api\n", "callslip.yaml:1: settings are written as `key: value`"),
        ("? [api]\n: 1\n", "callslip.yaml:1: the name of a setting is one word"),
        ("api: 8080\n", "api in callslip.yaml:1 holds settings of its own, as `key: value`"),
        (
            "api:\n  port: 1\n  port: 2\n",
            "api.port is set twice, in callslip.yaml:2 and in callslip.yaml:3",
        ),
        (
            "api:\n  port: 1\nlog: {}\napi:\n  host: a\n",
            "api is set twice, in callslip.yaml:1 and in callslip.yaml:4",
        ),
        (
            "search:\n  top: [1]\n",
            "search.top in callslip.yaml:2: expected a whole number at least 1, or nothing,"
            " got a list",
        ),
        (
            "data_dir: {here: 1}\n",
            "data_dir in callslip.yaml:1: expected a path, got settings below it",
        ),
    ],
)
def test_a_broken_file_is_named_with_its_line(tmp_path, text, message):
    assert complaint(tmp_path, text).startswith(message)


def test_a_file_that_is_not_utf8_is_named_with_its_line(tmp_path):
    (tmp_path / "callslip.yaml").write_bytes("# 한빛\ndata_dir: 자료\n".encode("cp949"))
    with pytest.raises(SettingsError, match=r"callslip\.yaml:1: this is not UTF-8 text"):
        load({}, tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "api:\n  prot: 1\n",
            "unknown setting api.prot in callslip.yaml:2; did you mean api.port?",
        ),
        ("port: 1\n", "unknown setting port in callslip.yaml:1; did you mean api.port?"),
        ("serch:\n  top: 1\n", "unknown setting serch in callslip.yaml:1; did you mean search?"),
        ("zzz: 1\n", "unknown setting zzz in callslip.yaml:1"),
    ],
)
def test_an_unknown_key_in_yaml_is_an_error_that_names_the_nearest(tmp_path, text, message):
    assert complaint(tmp_path, text) == message


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "CALLSLIP_API__PROT",
            "unknown variable CALLSLIP_API__PROT; did you mean CALLSLIP_API__PORT?",
        ),
        (
            "CALLSLIP_API_PORT",
            "unknown variable CALLSLIP_API_PORT; did you mean CALLSLIP_API__PORT?",
        ),
        (
            "callslip_api__port",
            "unknown variable callslip_api__port; did you mean CALLSLIP_API__PORT?",
        ),
        ("CALLSLIP_ZZZ", "unknown variable CALLSLIP_ZZZ"),
    ],
)
def test_an_unknown_variable_is_an_error_that_names_the_nearest(tmp_path, name, message):
    assert complaint(tmp_path, **{name: "1"}) == message


def test_variables_of_tests_and_of_other_programs_are_left_alone(tmp_path):
    load({"CALLSLIP_TEST_POSTGRESQL": "x", "PORT": "1", "CALLSLIP": "y"}, tmp_path)


def test_all_unknown_keys_of_a_file_are_named_at_once(tmp_path):
    assert len(complaint(tmp_path, "zzz: 1\nyyy: 2\n").splitlines()) == 2


def test_a_wrong_value_names_key_origin_and_what_was_expected(tmp_path):
    assert complaint(tmp_path, "api:\n  port: 80a\n", CALLSLIP_SEARCH__FUSION="max") == (
        "api.port in callslip.yaml:2: expected a whole number from 0 to 65535, got 80a\n"
        "search.fusion in CALLSLIP_SEARCH__FUSION:"
        " expected one of calibrated, weighted, rrf, native, got max"
    )


@pytest.mark.parametrize("text", ["yes", "1.5", "-1", "70000", '""', "~"])
def test_yaml_and_environment_refuse_the_same_values(tmp_path, text):
    assert complaint(tmp_path, f"api:\n  port: {text}\n").startswith("api.port in callslip.yaml:2")
    variable = text.strip('"~')
    assert complaint(tmp_path, CALLSLIP_API__PORT=variable).startswith("api.port in CALLSLIP_")


def test_yaml_words_that_look_like_other_types_stay_text(tmp_path):
    write(tmp_path, "embedder:\n  model: 2026-01-31\n  query_model: yes\n  api_key: 007\n")
    embedder = load({}, tmp_path).settings.embedder
    assert (embedder.model, embedder.query_model) == ("2026-01-31", "yes")
    assert embedder.api_key == SecretStr("007")


def test_an_empty_variable_unsets_what_the_file_sets(tmp_path):
    write(tmp_path, "broker:\n  url: redis://elsewhere/0\n")
    loaded = load({"CALLSLIP_BROKER__URL": ""}, tmp_path)
    assert loaded.settings.broker.url is None
    assert loaded.origins["broker.url"] == "CALLSLIP_BROKER__URL"


def test_a_variable_may_name_a_file_with_the_value(tmp_path):
    secret = tmp_path / "key"
    secret.write_text("a-long-secret\n")
    write(tmp_path, "api:\n  key: of-the-file\n")
    loaded = load({"CALLSLIP_API__KEY_FILE": str(secret)}, tmp_path)
    assert loaded.settings.api.key == SecretStr("a-long-secret")
    assert loaded.origins["api.key"].endswith("key)")
    both = {"CALLSLIP_API__KEY_FILE": str(secret), "CALLSLIP_API__KEY": "of-the-variable"}
    assert load(both, tmp_path).settings.api.key == SecretStr("of-the-variable")
    secret.write_text("\n")
    assert load({"CALLSLIP_API__KEY_FILE": str(secret)}, tmp_path).settings.api.key is None


def test_a_file_of_a_value_that_cannot_be_read_is_named(tmp_path):
    absent = tmp_path / "absent"
    assert complaint(tmp_path, CALLSLIP_API__KEY_FILE=str(absent)) == (
        "CALLSLIP_API__KEY_FILE names absent, which cannot be read: No such file or directory"
    )
    long, garbage = tmp_path / "long", tmp_path / "garbage"
    long.write_bytes(b"x" * 65_537)
    garbage.write_bytes(b"\xff\xfe")
    assert "more than 65536 bytes" in complaint(tmp_path, CALLSLIP_API__KEY_FILE=str(long))
    assert "not UTF-8" in complaint(tmp_path, CALLSLIP_API__KEY_FILE=str(garbage))
    message = complaint(tmp_path, CALLSLIP_API__KEYS_FILE="x")
    assert message.startswith("unknown variable CALLSLIP_API__KEYS_FILE")


def test_a_setting_whose_name_ends_with_file_is_no_file_of_a_value(tmp_path):
    model = {
        "CALLSLIP_RERANK__PROVIDER": "onnx",
        "CALLSLIP_RERANK__ONNX_FILE": "model.onnx",
        "CALLSLIP_RERANK__TOKENIZER_FILE": "tokenizer.json",
    }
    assert load(model, tmp_path).settings.rerank.onnx_file == Path("model.onnx")


def test_settings_that_contradict_each_other_are_named_with_their_origins(tmp_path):
    message = complaint(
        tmp_path, "chunking:\n  overlap_tokens: 450\n", CALLSLIP_CHUNKING__TARGET_TOKENS="400"
    )
    assert message == (
        "chunking in callslip.yaml:2, CALLSLIP_CHUNKING__TARGET_TOKENS: lengths must satisfy"
        " overlap_tokens < target_tokens <= max_tokens, not 450 < 400 <= 500"
    )
    assert complaint(tmp_path, CALLSLIP_SEARCH__TOP="300") == (
        "search in CALLSLIP_SEARCH__TOP: top (300) is above max_top (200)"
    )


def test_secrets_are_masked_in_what_is_described(tmp_path):
    loaded = load(
        {
            "CALLSLIP_EMBEDDER__API_KEY": "sk-hush",
            "CALLSLIP_BROKER__URL": "redis://user:hush@host:6379/0",
            "CALLSLIP_LEDGER__URL": "postgresql+psycopg://u:hu/s@h@host/db?password=hush&a=b",
        },
        tmp_path,
    )
    rows = {row.key: row for row in describe(loaded)}
    assert list(rows) == list(KEYS)
    assert rows["embedder.api_key"].value == "********"
    assert rows["broker.url"].value == "redis://user:********@host:6379/0"
    assert rows["ledger.url"].value == (
        "postgresql+psycopg://u:********@host/db?password=********&a=b"
    )
    assert rows["broker.url"].origin == "CALLSLIP_BROKER__URL"
    assert rows["blobs.url"][1:3] == ("(unset)", "default")
    assert "hush" not in repr(loaded.settings.embedder)


def test_secrets_are_masked_in_errors(tmp_path):
    message = complaint(tmp_path, CALLSLIP_DATA_DIR="", CALLSLIP_LOG__LEVEL="x://u:hush@h")
    assert "hush" not in message
    assert "x://u:********@h" in message
    message = complaint(tmp_path, "embedder:\n  api_key: [hush]\n")
    assert message == "embedder.api_key in callslip.yaml:2: expected text, or nothing, got a list"


@pytest.mark.parametrize(
    "text", ["redis://host:6379/0", "s3://bucket/prefix", "http://[::1]:8000", "var", "a@b.example"]
)
def test_masking_leaves_what_holds_no_password(text):
    assert masked(text) == text


def test_masking_hides_a_password_without_a_user():
    assert masked("redis://:hush@host") == "redis://:********@host"


def test_environment_is_the_inverse_of_loading(tmp_path):
    overrides = {
        "data_dir": tmp_path / "자료",
        "api.port": 1234,
        "search.alpha": 0.25,
        "embedder.api_key": SecretStr("hush"),
        "broker.url": None,
    }
    variables = environment(overrides)
    assert variables["CALLSLIP_API__PORT"] == "1234"
    settings = load(variables, tmp_path).settings
    assert settings.data_dir == overrides["data_dir"]
    assert (settings.api.port, settings.search.alpha) == (1234, 0.25)
    assert settings.embedder.api_key == SecretStr("hush")
    assert settings.broker.url is None


def test_environment_refuses_an_unknown_key():
    with pytest.raises(SettingsError, match=r"unknown setting api\.prot; did you mean api\.port\?"):
        environment({"api.prot": 1})


EMBEDDERS = "embedders:\n  bge:\n    base_url: http://host/v1\n    model: m\n    api_key: hush\n"


def test_embedders_have_names_of_their_own_in_the_file_and_in_variables(tmp_path):
    path = write(tmp_path, EMBEDDERS)
    secret = tmp_path / "secret"
    secret.write_text("hush\n")
    variables = {
        "CALLSLIP_EMBEDDERS__BGE__DIMENSION": "12",
        "CALLSLIP_EMBEDDERS__TWO__KIND": "e5",
        "CALLSLIP_EMBEDDERS__TWO__API_KEY_FILE": str(secret),
    }
    loaded = load(variables, tmp_path)
    bge, two = loaded.settings.embedders["bge"], loaded.settings.embedders["two"]
    assert (bge.kind, bge.model, bge.dimension) == ("openai", "m", 12)
    assert (two.kind, two.api_key) == ("e5", SecretStr("hush"))
    assert loaded.origins["embedders.bge.model"] == f"{path}:4"
    assert loaded.origins["embedders.bge.dimension"] == "CALLSLIP_EMBEDDERS__BGE__DIMENSION"
    rows = {row.key: row.value for row in describe(loaded)}
    assert rows["embedders.bge.api_key"] == rows["embedders.two.api_key"] == "********"
    of_children = environment(values(loaded.settings))
    (tmp_path / "callslip.yaml").unlink()
    assert load(of_children, tmp_path).settings == loaded.settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  Bge:\n    model: m\n", "unknown setting embedders.Bge in callslip.yaml:2: a name has"),
        ("  b:\n    model: m\n", "embedders.b in callslip.yaml:3: kind openai needs base_url and"),
        ("  b:\n    kind: none\n", "embedders.b.kind in callslip.yaml:3: expected one of openai,"),
        ("  b:\n    modl: m\n", "unknown setting embedders.b.modl in callslip.yaml:3; did you"),
        ("  b: m\n", "embedders.b in callslip.yaml:2 holds settings of its own"),
    ],
)
def test_a_wrong_embedder_is_named(tmp_path, text, message):
    assert complaint(tmp_path, f"embedders:\n{text}").startswith(message)


def test_get_settings_reads_once_per_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CALLSLIP_SEARCH__TOP", "3")
    get_settings.cache_clear()
    try:
        assert get_settings().search.top == 3
        monkeypatch.setenv("CALLSLIP_SEARCH__TOP", "4")
        assert get_settings().search.top == 3
    finally:
        get_settings.cache_clear()


def test_every_setting_says_what_it_is_and_what_it_takes():
    for key, field in KEYS.items():
        assert field.description, f"{key} has no description"
        assert accepts(field)


def test_docs_settings_is_what_the_model_says():
    written = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert written == reference(), "run: python -m tools.settings_page > docs/settings.md"


OF_OTHER_SYSTEMS = {
    "CHROMA_COLLECTION_NAME": ("faq.collection", "help"),
    "TOP_K": ("faq.top_k", "7"),
    "SIMILARITY_THRESHOLD": ("faq.threshold", "0.75"),
    "WEAVIATE_ENDPOINT": ("weaviate.url", "http://weaviate:8080"),
    "WEAVIATE_API_KEY": ("weaviate.api_key", "of-weaviate"),
    "EMBED_MODEL": ("embedder.model", "openai/text-embedding-3-large"),
    "EMBED_API_KEY": ("embedder.api_key", "of-the-embedder"),
}


def value_of(loaded: Loaded, key: str) -> str:
    value = reduce(getattr, key.split("."), loaded.settings)
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)


@pytest.mark.parametrize("name", OF_OTHER_SYSTEMS)
def test_a_variable_of_another_system_wins_over_the_file_and_ours_over_it(tmp_path, name):
    key, text = OF_OTHER_SYSTEMS[name]
    section, field = key.split(".")
    write(tmp_path, f"{section}:\n  {field}: '1'\n")
    loaded = load({name: text}, tmp_path)
    assert (value_of(loaded, key), loaded.origins[key]) == (text, name)
    ours = load({name: text, variable(key): "1"}, tmp_path)
    assert (value_of(ours, key), ours.origins[key]) == (
        value_of(load({}, tmp_path), key),
        variable(key),
    )
    assert value_of(load({name: ""}, tmp_path), key) == value_of(load({}, tmp_path), key)
    assert name in (KEYS[key].description or "")


def test_a_wrong_value_of_another_systems_variable_names_it(tmp_path):
    assert complaint(tmp_path, TOP_K="many").startswith("faq.top_k in TOP_K: expected")
    assert "SIMILARITY_THRESHOLD" in complaint(tmp_path, SIMILARITY_THRESHOLD="7")


def test_variables_of_another_system_send_no_text_anywhere(tmp_path):
    loaded = load({"EMBED_MODEL": "openai/x", "EMBED_API_KEY": "k"}, tmp_path)
    assert loaded.settings.embedder.kind == "e5"


@pytest.mark.parametrize(
    ("cores", "environ", "threads", "of_a_question", "questions_at_once"),
    [
        (1, {}, 1, 1, 1),
        (2, {}, 1, 2, 1),
        (8, {}, 4, 4, 2),
        (16, {}, 8, 8, 2),
        (8, {"CALLSLIP_INGEST__CONCURRENCY": "8"}, 1, 4, 2),
        (8, {"CALLSLIP_EMBEDDER__THREADS": "2"}, 2, 2, 4),
    ],
)
def test_a_question_is_embedded_with_more_cores_than_a_passage(
    tmp_path: Path,
    cores: int,
    environ: dict[str, str],
    threads: int,
    of_a_question: int,
    questions_at_once: int,
) -> None:
    settings = load(environ, tmp_path).settings
    with patch("os.cpu_count", lambda: cores):
        assert settings.embedder_threads == threads
        assert settings.inferences_at_once == 1
        of_questions = settings.for_questions()
        assert of_questions.embedder_threads == of_a_question
        assert of_questions.inferences_at_once == questions_at_once
