"""A guided head learns to look where word statistics say, and what is guided can be computed again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import DONE, SHORT, Small, make_corpus, recipe
from test_step_gradients import model_of, share_of

from limelight import bundle
from limelight.errors import ConfigError
from limelight.text.pieces.model_one import ModelOne
from limelight.training.run_folder import BUNDLE
from limelight.training.step.gradients import batch_of, gradients
from limelight.training.step.guided_alignment import AlignmentGuide, find_guided_head, watch_guided
from limelight.training.step.trained_model import TrainedModel

PAIRS = [[4, 5, 6], [6, 4], [5, 7], [7, 6, 5], [4, 7], [5, 4]]
TURNED = [[number + 10 for number in reversed(ids)] for ids in PAIRS]  # each piece is one more than ten; the order is turned


def test_model_one_finds_the_words() -> None:
    learnt = ModelOne.learn(PAIRS, TURNED)
    posterior = learnt.find_posterior([4, 5, 6], [16, 15, 14])
    assert posterior.sum(axis=1) == pytest.approx([1, 1, 1])
    assert posterior.argmax(axis=1).tolist() == [2, 1, 0]


def test_a_guide_knows_what_the_statistics_know_and_nothing_of_other_pieces() -> None:
    learnt = ModelOne.learn(PAIRS, TURNED)
    guide = AlignmentGuide.of(learnt, 1.0)
    found = guide.find_posterior(torch.tensor([[4, 5, 6, 3, 0]]), torch.tensor([[16, 15, 14, 3, 0]]))[0]
    assert np.allclose(found[:3, :3], learnt.find_posterior([4, 5, 6], [16, 15, 14]), atol=2e-4)  # what is below LEAST is forgotten
    assert found[3:].sum() == 0 and found[:, 3:].sum() == 0
    beyond = guide.find_posterior(torch.tensor([[4]]), torch.tensor([[14 + guide.stride]]))  # would be a key of the next source piece
    assert beyond.sum() == 0


@pytest.mark.parametrize(
    "more",
    [{"schedule": {"both_directions": 0.3, "steps": 10, "warmup": 1}}, {"machine": {"compile": True}}, {"machine": {"recompute": True}}],
)
def test_what_does_not_go_with_it_is_refused(more: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"guided_alignment .*; take one of them"):
        recipe(tmp_path, guided_alignment=0.05, **more)


@pytest.mark.parametrize("weight", [True, 0, -1, 11, "much"])
def test_a_weight_is_a_number(weight: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="guided_alignment"):
        recipe(tmp_path, guided_alignment=weight)


@pytest.mark.process
def test_the_bundle_names_the_head_that_was_guided(tmp_path: Path) -> None:
    run = Small(make_corpus(tmp_path / "corpus"), tmp_path / "run", {**SHORT, "guided_alignment": 0.05})
    assert run.live() == DONE
    assert bundle.read(run.run / BUNDLE).settings.alignment == ((0, 0),)


def guide_of_shares(weight: float) -> AlignmentGuide:
    share = share_of([0, 1, 2, 3, 4])
    return AlignmentGuide.of(ModelOne.learn([row[row > 3] for row in share.source], [row[row > 3] for row in share.target]), weight)


@pytest.mark.parametrize("r_drop", [None, 2.0])
@pytest.mark.parametrize("recompute", [False, True])
def test_a_guide_adds_its_part_to_the_loss_and_to_the_gradient_of_one_layer(r_drop: float | None, recompute: bool) -> None:
    def take(guide: AlignmentGuide | None) -> tuple[float, torch.Tensor]:
        model = model_of()
        model.recompute_activations(recompute)
        numbers = TrainedModel(model, "float32", guide=guide)
        found = gradients(numbers, [share_of([0, 1, 2, 3, 4])], 0.1, r_drop)
        assert not model.decoder.blocks[0].cross_attention.looks
        return found.loss, numbers.named["decoder.blocks.0.cross_attention.q.weight"].grad

    (plain, before), (small, near), (large, far) = (take(guide) for guide in (None, guide_of_shares(0.5), guide_of_shares(1.0)))
    assert plain < small < large and large - plain == pytest.approx(2 * (small - plain), rel=1e-4)
    assert torch.allclose(far - before, 2 * (near - before), atol=1e-6) and (near - before).abs().max() > 1e-4


@pytest.mark.parametrize(("guided", "least", "most"), [(True, 0.0, 0.5), (False, 0.7, 10.0)])
def test_a_head_learns_to_look_where_it_is_told(guided: bool, least: float, most: float) -> None:
    """In parts of what it is away from the statistics at first. Nobody who is not told learns it."""
    share, model = share_of([0, 1, 2, 3, 4]), model_of()
    guide, batch = guide_of_shares(1.0), batch_of(share, torch.device("cpu"), 0)
    numbers = TrainedModel(model, "float32", guide=guide if guided else None)
    steps = torch.optim.Adam(model.parameters(), 5e-3)
    wanted = guide.find_posterior(batch.source, batch.target_out)

    def look_away() -> float:
        with torch.no_grad(), watch_guided(model) as seen:
            model.loss(batch)
        return float(guide.measure(seen[0], batch) - guide.measure(wanted, batch))

    before = look_away()
    for _ in range(60):
        gradients(numbers, [share], 0.1, None)
        steps.step()
        steps.zero_grad()
    assert least * before <= look_away() <= most * before
    assert find_guided_head(model.config) == (0, 0)
