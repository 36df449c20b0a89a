"""The card of a bundle, and of its export, has its scores as the hub's own library reads them."""

from pathlib import Path

import pytest

pytest.importorskip("huggingface_hub", reason="needs the hub's library; pip install limelight[hub]")
from huggingface_hub import EvalResult, ModelCard

from limelight.bundle import read
from limelight.bundle.card import card
from limelight.bundle.settings import BundleSettings, Score
from limelight.interop.huggingface.export import export_folder

pytestmark = pytest.mark.slow
STORED = Path(__file__).parents[1] / "bundles" / "format-1"


def results(text: str) -> list[EvalResult]:
    found = ModelCard(text).data.eval_results  # raises where the metadata is not what the hub takes
    assert found is not None
    return list(found)


def check(found: list[EvalResult], settings: BundleSettings) -> None:
    between = "-".join(settings.languages)
    told = [(each.dataset_name, each.metric_name, each.metric_value, each.metric_args) for each in found]
    assert told == [(s.test_set, s.metric, s.value, {"signature": s.signature, "lines": s.lines}) for s in settings.scores]
    assert {(each.task_type, each.dataset_config) for each in found} == {("translation", between)}


def test_an_export_has_the_scores_of_its_bundle(tmp_path: Path) -> None:
    bundle = read(STORED)
    export_folder(bundle, tmp_path / "hf")
    text = (tmp_path / "hf" / "README.md").read_text("utf-8")
    found = results(text)
    check(found, bundle.settings)
    assert "bleu" in [each.metric_type for each in found] and len(found) == len(bundle.settings.scores) > 1
    assert ModelCard(text).data.library_name == "transformers" and ModelCard(text).data.model_name == "en-de"


def test_names_of_any_test_set_are_kept() -> None:
    names = ('a "quoted": set', "no", "- 1", "{x} # y", "WMT\u201914 \U0001f600", "null")
    scores = [
        Score(test_set=name, metric=metric, value=12.5, signature="nrefs:1|tok:13a", lines=3)
        for name in names
        for metric in ("BLEU", "chrF++")
    ]
    settings = read(STORED).settings.changed(scores=tuple(scores))
    found = results(card(settings, {}, "cc-by-4.0"))
    check(found, settings)
    assert {each.metric_type for each in found} == {"bleu", "chrf"}


def test_without_scores_there_is_no_index() -> None:
    assert "model-index" not in card(read(STORED).settings.changed(scores=()), {}, None)
