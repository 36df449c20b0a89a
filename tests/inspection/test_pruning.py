"""A model without some of its heads computes what the whole one does with these muted; it is smaller, and engines and plans know it."""

from pathlib import Path

import pytest
import torch
from lit_models import INPUTS, KINDS, SOURCE, model_of
from typer.testing import CliRunner

from limelight.bundle.bundle import read
from limelight.bundle.settings import BundleSettings
from limelight.cli.main import app
from limelight.decoding.steps import Specials
from limelight.errors import ConfigError
from limelight.inspection.analysis.importance import importance
from limelight.inspection.analysis.pruning import Pruned, cut_out, prune
from limelight.inspection.head_names import KIND_OF
from limelight.interop.architecture import unlike_all
from limelight.interop.ctranslate2.export import export
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.planning.cost.size import parameters
from limelight.planning.cost.weights import weights
from limelight.translator.translate import Translator

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
PLACES = [("enc", 0), ("enc", 1), ("enc", 2), ("dec", 0), ("dec", 1), ("cross", 0), ("cross", 1)]
PAIRS = [([5, 9, 7], [10, 4]), ([11, 6, 8, 5], [13, 5, 9])]


def logits(model: Transformer) -> torch.Tensor:
    with torch.inference_mode():
        return model(torch.tensor([SOURCE]), torch.tensor([INPUTS]))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "num_kv_heads" not in kind], ids=str)
def test_what_is_left_computes_what_the_whole_does_with_these_heads_muted(kind: dict[str, str]) -> None:
    model, least = model_of(**kind), {place: number % 4 for number, place in enumerate(PLACES)}
    smaller = cut_out(model, least)
    before = logits(model)
    for light in model.spotlights():
        light.attention.gate = torch.tensor([float(head != least[KIND_OF[light.kind], light.layer]) for head in range(4)])
    assert torch.allclose(logits(smaller), logits(model), atol=1e-5)
    assert not torch.allclose(before, logits(model), atol=1e-3), "these heads do something"


def test_the_head_that_is_needed_least_goes_and_the_rest_is_judged_again() -> None:
    model = model_of()
    before = logits(model)
    first = {head.id: head.delta_logp for head in importance(model, PAIRS, Specials())}
    least = {(kind, at): max(range(4), key=lambda head: first[f"{kind}.{at}.{head}"]) for kind, at in PLACES}
    once, twice = (prune(model, PAIRS, Specials(), count, lambda done, total: None) for count in (1, 2))
    assert once.left == {place: [head for head in range(4) if head != least[place]] for place in PLACES}
    again = {head.id: head.delta_logp for head in importance(once.model, PAIRS, Specials())}
    for (kind, at), left in once.left.items():
        gone = max(range(3), key=lambda head: again[f"{kind}.{at}.{head}"])
        assert twice.left[kind, at] == [head for place, head in enumerate(left) if place != gone]
    assert torch.equal(logits(model), before), "the whole model is not touched"
    assert len(twice.list_pruned(model.config)) == 2 * len(PLACES)


def test_a_plan_knows_how_large_it_is() -> None:
    config = ModelConfig(vocab_size=50, d_model=24, num_heads=3, head_width=6, encoder_layers=2, decoder_layers=1, d_ff=40)
    model = Transformer(config)
    assert {name: tuple(each.shape) for name, each in model.named_parameters()} == weights(config)
    assert sum(parameters(config).values()) == sum(each.numel() for each in model.parameters())
    assert any("pruned" in problem for problem in unlike_all(config))


def test_settings_of_what_is_left_are_its_own() -> None:
    model = model_of()
    settings = BundleSettings(languages=("en", "de"), model=model.config, alignment=((0, 0), (1, 3)))
    left = {place: [1, 2, 3] for place in PLACES}
    adapted = Pruned(cut_out(model, dict.fromkeys(PLACES, 0)), left).adapt(settings)
    assert adapted.alignment == ((1, 2),)
    assert (adapted.model.num_heads, adapted.model.d_head, adapted.model.heads_width) == (3, 6, 18)
    assert adapted.trained_on == {"heads pruned": 7}
    assert Pruned(cut_out(model, dict.fromkeys(PLACES, 0)), left).adapt(settings.changed(trained_on={"heads pruned": 7})).trained_on == {
        "heads pruned": 14
    }
    assert b"head_width" not in settings.encode() and b'"head_width": 6' in adapted.encode()


@pytest.mark.parametrize(("count", "changes", "says"), [(4, {}, "from 1 to 3"), (0, {}, "from 1 to 3"), (1, {"num_kv_heads": 2}, "share")])
def test_what_cannot_go_is_refused(count: int, changes: dict[str, int], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        prune(model_of(**changes), PAIRS, Specials(), count, lambda done, total: None)


def test_options_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    for given in (
        ["--prune", "1"],
        ["--prune", "1", "-o", "x"],
        ["--importance", "8", "-o", "x"],
        ["--importance", "8", "--prune", "1", "-o", str(tmp_path)],
    ):
        done = CliRunner().invoke(app, ["inspect", str(BUNDLE), *given])
        assert isinstance(done.exception, ConfigError), given


@pytest.mark.slow
def test_a_pruned_bundle_translates_and_is_exported(tmp_path: Path) -> None:
    digits = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    texts = [" ".join((a, b, c)) for a, b, c in zip(digits, digits[3:] + digits[:3], digits[5:] + digits[:5], strict=True)]
    (tmp_path / "some").write_text("\n".join(texts), "utf-8")
    output = tmp_path / "smaller"
    asked = ["inspect", str(BUNDLE), "--importance", str(tmp_path / "some"), "--prune", "1", "-o", str(output), "--threads", "1"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    assert "pruned 1 of 4 heads of each attention, chosen by 5 sentences" in done.output and "of 4 translated as before" in done.output
    bundle = read(output)
    assert bundle.settings.model.num_heads == 3 and not bundle.settings.scores and bundle.settings.confidence is None
    assert (output / "model.safetensors").stat().st_size < (BUNDLE / "model.safetensors").stat().st_size
    export(bundle, texts=texts)
    found = {}
    for engine in ("torch", "ctranslate2"):
        with Translator.load(output, engine=engine, threads=1) as translator:
            found[engine] = [each.text for each in translator.translate(texts)]
    assert found["torch"] == found["ctranslate2"]
