"""The tree of a search: every translation that the search gives is a path of it, with the same probabilities."""

from collections import Counter

import pytest
import torch

from limelight.decoding.config import Sampling, SearchSettings
from limelight.decoding.lengths import length_penalty
from limelight.decoding.record import CUT, Record
from limelight.decoding.search import search
from limelight.decoding.steps import Hypothesis, Outcome, Request
from limelight.engines.torch import OnHost
from limelight.inspection.analysis.search_tree_builder import beam_tree
from limelight.inspection.trace import NO_PARENT, BeamTree
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer

END = 3
SEARCHES = {
    "greedy": SearchSettings(beam=1, max_length=9),
    "patience": SearchSettings(beam=4, nbest=4, max_length=9),
    "patient": SearchSettings(beam=3, nbest=3, max_length=9, patience=2.0),
    "classical": SearchSettings(beam=4, nbest=3, patience=None, max_length=9),
    "power": SearchSettings(beam=4, nbest=2, length_penalty=1.2, length_norm="power", max_length=9),
    "groups": SearchSettings(beam=4, nbest=4, groups=2, max_length=9),
}
SOURCES = [[5, 9, 17], [6, 6, 21, 8, 30], [12], [7, 28, 11, 19, 22, 10]]


@pytest.fixture(scope="module")
def model() -> Transformer:
    torch.manual_seed(3)
    shape = {"d_model": 24, "d_ff": 20, "num_heads": 3, "encoder_layers": 1, "decoder_layers": 2}
    made = Transformer(ModelConfig(vocab_size=37, output_bias=True, norm_order="pre", **shape)).eval()
    with torch.no_grad():  # so that its probabilities differ, and some translations end before the limit
        made.target_embedding.weight.mul_(2)
        made.output_bias[END] = 3.0
    return made


def trees(model: Transformer, settings: SearchSettings, requests: list[Request]) -> list[tuple[Outcome, BeamTree]]:
    record = Record()
    outcomes = search(OnHost(model), requests, settings, record=record)
    found = []
    for number, outcome in enumerate(outcomes):
        tree = beam_tree(record, number, lambda i: f"p{i}")
        assert tree is not None
        found.append((outcome, tree))
    return found


def whole(hypothesis: Hypothesis) -> list[int]:
    return [*hypothesis.ids, END] if hypothesis.finish == "eos" else hypothesis.ids


def check_well_made(tree: BeamTree) -> None:
    root = tree.nodes[0]
    assert (root.p, root.t, root.id, root.cum, root.kept, root.done) == (NO_PARENT, 0, 2, 0.0, True, False)
    inner = {node.p for node in tree.nodes}
    assert len({(node.p, node.id) for node in tree.nodes}) == len(tree.nodes), "equal beginnings are one node"
    for number, node in enumerate(tree.nodes[1:], 1):
        parent = tree.nodes[node.p]
        assert node.n == number and node.p < number and node.t == parent.t + 1 and node.piece == f"p{node.id}"
        assert parent.kept and node.cum == pytest.approx(parent.cum + node.lp, abs=1e-4)
        assert not (node.n in inner and node.done), "nothing goes on from an end"
        assert node.kept or not node.done
        assert (node.id == END) <= (node.done or not node.kept)


@pytest.mark.parametrize("settings", SEARCHES.values(), ids=SEARCHES)
@pytest.mark.parametrize("prefix", [(), (8, 25)], ids=["free", "prefix"])
def test_every_translation_is_a_path_and_the_best_one_is_read_from_the_tree_alone(model, settings, prefix):
    ended = 0
    for outcome, tree in trees(model, settings, [Request(source, prefix=prefix) for source in SOURCES]):
        check_well_made(tree)
        assert tree.size == settings.beam
        for hypothesis in outcome.hypotheses:
            at = tree.find(whole(hypothesis))
            assert at is not None and tree.nodes[at].done
            path = tree.path(at)
            assert [node.id for node in path] == whole(hypothesis)
            assert [node.lp for node in path] == pytest.approx(hypothesis.log_probs, abs=1e-6)
            ended += hypothesis.finish == "eos"
        done = [node for node in tree.nodes if node.done]
        done.sort(key=lambda node: -node.cum / length_penalty(node.t, settings))  # as the search scores them
        best = [[node.id for node in tree.path(end.n)] for end in done]
        assert best[: len(outcome.hypotheses)] == [whole(hypothesis) for hypothesis in outcome.hypotheses]
    assert ended or settings.beam == 1, "of these translations some should end by themselves"


def test_a_beam_keeps_as_many_beginnings_as_it_is_wide_and_the_cut_ones_are_worse(model):
    settings = SEARCHES["classical"]
    for _, tree in trees(model, settings, [Request(source) for source in SOURCES]):
        for t in range(1, max(node.t for node in tree.nodes) + 1):
            kept = [node.cum for node in tree.nodes if node.t == t and node.kept]
            cut = [node.cum for node in tree.nodes if node.t == t and not node.kept]
            assert 1 <= len(kept) <= settings.beam and len(cut) <= CUT
            assert not cut or max(cut) <= min(kept)
        assert any(not node.kept for node in tree.nodes)


def test_a_search_that_cuts_nothing_has_the_whole_tree(model):
    """Two pieces to choose from, a beam wide enough for all: each inner node has every child."""
    settings = SearchSettings(beam=64, nbest=1, patience=None, max_length=4, suppress=tuple(range(6, 37)))
    (_, tree) = trees(model, settings, [Request([5, 9])])[0]
    assert all(node.kept for node in tree.nodes)
    children = Counter(node.p for node in tree.nodes)
    assert all(children[node.n] == 3 for node in tree.nodes if not node.done and node.t < 3)  # 4, 5 and the end


def test_the_tree_of_a_sentence_does_not_depend_on_its_neighbours(model):
    settings = SEARCHES["patience"]
    together = trees(model, settings, [Request(source) for source in SOURCES])
    for (_, tree), source in zip(together, SOURCES, strict=True):
        (_, alone) = trees(model, settings, [Request(source)])[0]
        assert [(n.p, n.id, n.kept, n.done) for n in tree.nodes] == [(n.p, n.id, n.kept, n.done) for n in alone.nodes]


def test_constrained_and_marked_searches_have_trees_too(model):
    requests = [Request([5, 9, 17], phrases=[[30, 31]]), Request([6, 6], once=[33]), Request([12])]
    for outcome, tree in trees(model, SearchSettings(beam=4, max_length=12), requests):
        check_well_made(tree)
        at = tree.find(whole(outcome.hypotheses[0]))
        assert at is not None and tree.nodes[at].done


@pytest.mark.parametrize("most", [12, 20, 60])
def test_a_tree_that_is_too_large_keeps_the_best_translation_and_stays_a_tree(model, most):
    record, settings = Record(), SEARCHES["patience"]
    outcome = search(OnHost(model), [Request(SOURCES[1])], settings, record=record)[0]
    tree, all_of_it = (beam_tree(record, 0, lambda i: f"p{i}", size) for size in (most, 10_000))
    assert tree is not None and all_of_it is not None and len(tree.nodes) <= most < len(all_of_it.nodes)
    check_well_made(tree)
    assert tree.find(whole(outcome.hypotheses[0])) is not None


def test_what_was_not_searched_for_is_not_found(model):
    (_, tree) = trees(model, SEARCHES["greedy"], [Request([5, 9])])[0]
    assert tree.find([]) == 0
    assert tree.find([36, 36, 36, 36]) is None


def test_a_search_that_draws_has_no_tree(model):
    record = Record()
    search(OnHost(model), [Request([5, 9])], SearchSettings(sampling=Sampling(), nbest=2, max_length=6), record=record)
    assert beam_tree(record, 0, str) is None
