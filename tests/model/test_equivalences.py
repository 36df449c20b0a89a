"""Different ways to compute the same thing agree: cached, padded, batched, packed, recomputed, grouped, fused."""

import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import pad as pad_columns

from limelight.model import attention
from limelight.model.attention import Visible, attend_fused, attend_in_stages
from limelight.model.cache import DecoderState, SelfCache
from limelight.model.grid import Grid
from limelight.model.transformer import Batch, Transformer
from strategies import EXACT, Case, cases, few, gradients, make, normal, random_ids, tiny_case, tiny_config


def recompute(model: Transformer, source: Tensor, target: Tensor) -> Tensor:
    """Log-probabilities of all positions at once, (B, T, V)."""
    return torch.log_softmax(model(source, target), dim=-1)


def step_through(model: Transformer, state: DecoderState, target: Tensor) -> Tensor:
    """The same, one piece after another."""
    return torch.stack([model.step(token, state)[0] for token in target.T], dim=1)


@pytest.mark.slow
@few
@given(cases())
def test_cached_decoding_equals_recomputing_everything(case: Case):
    source, target = case.batch.source, case.batch.target_in
    stepped_BTV = step_through(case.model, case.model.start(source), target)
    torch.testing.assert_close(stepped_BTV, recompute(case.model, source, target), **EXACT)


@pytest.mark.slow
@few
@given(cases(), st.data())
def test_reordered_rows_continue_as_if_decoded_from_scratch(case: Case, data: st.DataObject):
    """As in a beam search: W hypotheses of each sentence, survivors take over the rows of the others, and sentences leave."""
    W, B = 3, len(case.batch.source)

    def draw_rows(sentences: int) -> Tensor:
        parents = data.draw(st.lists(st.integers(0, W - 1), min_size=sentences * W, max_size=sentences * W))
        return torch.arange(sentences).repeat_interleave(W) * W + torch.tensor(parents)

    state = case.model.start(case.batch.source, width=W)
    past = random_ids(B * W, 2)
    step_through(case.model, state, past)
    for seed in (1, 2):
        rows, newer = draw_rows(B), random_ids(B * W, 2, seed=seed)
        state.reorder(rows)
        step_through(case.model, state, newer)
        past = torch.cat([past[rows], newer], dim=1)
    kept = torch.tensor(data.draw(st.lists(st.integers(0, B - 1), min_size=1, max_size=4)))
    state.select(kept)
    last = random_ids(len(kept) * W, 3, seed=3)
    continued_BTV = step_through(case.model, state, last)

    assert state.length == 9
    whole = torch.cat([past.view(B, W, -1)[kept].flatten(0, 1), last], dim=1)
    scratch_BTV = recompute(case.model, case.batch.source[kept].repeat_interleave(W, dim=0), whole)
    torch.testing.assert_close(continued_BTV, scratch_BTV[:, 6:], **EXACT)


@pytest.mark.slow
@few
@given(cases(), st.data())
def test_selected_rows_continue_as_if_decoded_from_scratch(case: Case, data: st.DataObject):
    """Rows leave and multiply, also before the first step."""
    B = len(case.batch.source)
    some_rows = st.lists(st.integers(0, B - 1), min_size=1, max_size=4).map(torch.tensor)
    opened = data.draw(some_rows)
    kept = data.draw(st.lists(st.integers(0, len(opened) - 1), min_size=1, max_size=3).map(torch.tensor))
    before, after = random_ids(len(opened), 2), random_ids(len(kept), 3, seed=1)

    state = case.model.start(case.batch.source)
    state.select(opened)
    step_through(case.model, state, before)
    state.select(kept)
    continued_BTV = step_through(case.model, state, after)

    scratch_BTV = recompute(case.model, case.batch.source[opened[kept]], torch.cat([before[kept], after], dim=1))
    torch.testing.assert_close(continued_BTV, scratch_BTV[:, 2:], **EXACT)


@pytest.mark.slow
@pytest.mark.parametrize("moved_at", [SelfCache.FIRST_ROOM - 1, SelfCache.FIRST_ROOM, SelfCache.FIRST_ROOM + 1])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
def test_a_cache_that_outgrows_its_room_forgets_nothing(positions: str, moved_at: int):
    case = tiny_case(positions=positions, num_kv_heads=1)
    rows, steps = torch.tensor([1, 0, 1]), 2 * SelfCache.FIRST_ROOM + 3
    target = random_ids(2, steps)
    state = case.model.start(case.batch.source)
    step_through(case.model, state, target[:, :moved_at])
    state.select(rows)
    stepped_BTV = step_through(case.model, state, target[rows, moved_at:])
    assert state.length == steps
    scratch_BTV = recompute(case.model, case.batch.source[rows], target[rows])
    torch.testing.assert_close(stepped_BTV, scratch_BTV[:, moved_at:], **EXACT)


@pytest.mark.slow
@few
@given(cases(), st.integers(1, 4), st.integers(1, 4))
def test_padding_changes_nothing_at_real_positions(case: Case, more_source: int, more_target: int):
    b, pad = case.batch, case.config.pad_token
    wider = Batch.padded(
        pad_columns(b.source, (0, more_source), value=pad),
        pad_columns(b.target_in, (0, more_target), value=pad),
        pad_columns(b.target_out, (0, more_target), value=pad),
    )
    narrow_BTV, wide_BTV = case.model(b.source, b.target_in), case.model(wider.source, wider.target_in)
    real = b.target_out != pad
    torch.testing.assert_close(wide_BTV[:, : real.shape[1]][real], narrow_BTV[real], **EXACT)
    torch.testing.assert_close(case.model.loss(wider).mean, case.model.loss(b).mean, **EXACT)


@pytest.mark.slow
@few
@given(cases())
def test_batched_equals_one_by_one(case: Case):
    batched_BTV = case.model(case.batch.source, case.batch.target_in)
    for row in range(len(batched_BTV)):
        alone = case.row(row)
        alone_TV = case.model(alone.source, alone.target_in)[0]
        torch.testing.assert_close(batched_BTV[row, : len(alone_TV)], alone_TV, **EXACT)


def assert_same_loss_and_gradients(case: Case, one: Batch, other: Batch) -> None:
    losses = [case.model.loss(batch, smoothing=0.1) for batch in (one, other)]
    for field in dataclasses.fields(losses[0]):
        torch.testing.assert_close(*(getattr(loss, field.name) for loss in losses), **EXACT)
    torch.testing.assert_close(*(gradients(case.model, loss.total) for loss in losses), **EXACT)


@pytest.mark.slow
@few
@given(cases())
def test_a_packed_batch_has_the_loss_and_every_gradient_of_the_padded_one(case: Case):
    assert_same_loss_and_gradients(case, case.packed(), case.batch)


@pytest.mark.parametrize("pieces", [255, 256, 257])
def test_packing_works_when_the_pieces_just_fill_or_overflow_a_round_number(pieces: int):
    lengths = [16] * 14 + [20, pieces - 14 * 16 - 20]  # 16 rows, padded to 20
    case = tiny_case(lengths=(lengths, [length - 1 for length in lengths]), positions="rotary")
    assert_same_loss_and_gradients(case, case.packed(), case.batch)


@pytest.mark.slow
@few
@given(cases(), st.integers(1, 5))
def test_a_later_target_piece_never_changes_an_earlier_output(case: Case, place: int):
    source = case.batch.source
    target = random_ids(len(source), 6)
    changed = target.clone()
    changed[:, place:] = 4 + (target[:, place:] - 3) % 9  # another piece everywhere
    before_BTV, after_BTV = case.model(source, target), case.model(source, changed)
    assert torch.equal(before_BTV[:, :place], after_BTV[:, :place])
    assert not torch.equal(before_BTV[:, place:], after_BTV[:, place:])


@pytest.mark.slow
@few
@given(cases())
def test_attention_weights_sum_to_one_and_are_exactly_zero_where_hidden(case: Case):
    seen: dict[tuple[str, int], Tensor] = {}
    for light in case.model.spotlights():

        def capture(stage: str, value: Tensor, key: tuple[str, int] = (light.kind, light.layer)) -> None:
            if stage == "weights":
                seen[key] = value

        light.attention.looks.append(capture)
    case.model(case.batch.source, case.batch.target_in)

    pieces_BS, T = case.batch.source != case.config.pad_token, case.batch.target_in.shape[1]
    past_TT = torch.ones(T, T, dtype=torch.bool).tril()
    for (kind, _), weights_BHTS in seen.items():
        visible = (past_TT if kind == "decoder" else pieces_BS[:, None, None, :]).expand_as(weights_BHTS)
        assert torch.all(weights_BHTS[~visible] == 0)
        assert torch.all(weights_BHTS[visible] > 0)
        torch.testing.assert_close(weights_BHTS.sum(-1), torch.ones_like(weights_BHTS[..., 0]), **EXACT)


@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_an_encoder_without_positions_does_not_mind_the_order_of_the_pieces(norm_order: str):
    order = torch.tensor([3, 0, 4, 1, 2])
    keys_BS = torch.tensor([[True] * 5, [True, True, True, False, False]])
    x_BSD = normal(2, 5, 18)
    for positions, holds in [("sinusoidal", True), ("rotary", False)]:
        encoder = make(tiny_config(norm_order=norm_order, positions=positions), seed=1).encoder
        memory_BSD = encoder(x_BSD, Visible(keys=keys_BS), Grid.padded(keys_BS))
        shuffled_BSD = encoder(x_BSD[:, order], Visible(keys=keys_BS[:, order]), Grid.padded(keys_BS))
        same = torch.allclose(shuffled_BSD[0], memory_BSD[0, order], **EXACT)
        assert same == holds
        if holds:
            real_BS = keys_BS[:, order]
            torch.testing.assert_close(shuffled_BSD[real_BS], memory_BSD[:, order][real_BS], **EXACT)


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_rotary_attention_depends_on_distances_only(layout: str):
    for positions, holds in [("rotary", True), ("sinusoidal", False)]:
        near = tiny_case(positions=positions, position_layout=layout, num_kv_heads=1)
        far = make(near.config.changed(position_offset=37), seed=1)
        far.load_state_dict(near.model.state_dict())
        logits = [model(near.batch.source, near.batch.target_in) for model in (near.model, far)]
        assert torch.allclose(*logits, **EXACT) == holds


@pytest.mark.slow
@few
@given(cases(dropout=0.3, attention_dropout=0.2, activation_dropout=0.1))
def test_recomputing_activations_changes_neither_loss_nor_gradients_also_with_dropout(case: Case):
    visits = []
    for light in case.model.spotlights():
        light.attention.register_forward_pre_hook(lambda *_: visits.append(1))
    case.model.train()
    results = []
    for recompute_too in (False, True):
        case.model.recompute_activations(recompute_too)
        torch.manual_seed(5)
        loss = case.model.loss(case.packed()).total
        results.append({"loss": loss, **gradients(case.model, loss)})
    torch.testing.assert_close(*results, **EXACT)
    assert len(visits) == 3 * len(case.model.spotlights())  # once without; forward and again backward with


def test_as_many_kv_heads_as_heads_is_plain_attention():
    plain = tiny_case()
    grouped = make(plain.config.changed(num_kv_heads=3), seed=1)
    grouped.load_state_dict(plain.model.state_dict())
    source, target = plain.batch.source, plain.batch.target_in
    assert torch.equal(grouped(source, target), plain.model(source, target))


@pytest.mark.parametrize(("heads", "kv_heads"), [(3, 1), (4, 2), (6, 3)])
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_grouped_queries_equal_plain_heads_with_repeated_keys_and_values(heads: int, kv_heads: int, positions: str):
    case = tiny_case(num_heads=heads, num_kv_heads=kv_heads, d_model=6 * heads, positions=positions)
    plain, source, target = case.without_groups(), case.batch.source, case.batch.target_in
    torch.testing.assert_close(plain(source, target), case.model(source, target), **EXACT)


@few
@given(st.booleans(), st.booleans(), st.integers(1, 4), st.integers(4, 7))
def test_fused_and_staged_attention_agree(padded: bool, causal: bool, T: int, S: int):
    q_BHTK, k_BHSK, v_BHSK = normal(2, 3, T, 6), normal(2, 3, S, 6, seed=1), normal(2, 3, S, 6, seed=2)
    keys_BS = torch.arange(S) < torch.tensor([[S], [S - 3]]) if padded else None
    for length in (T, S):  # with as many keys as queries the fused kernel makes the causal mask by itself
        k_BHLK, v_BHLK = k_BHSK[:, :, :length], v_BHSK[:, :, :length]
        visible = Visible(None if keys_BS is None else keys_BS[:, :length], causal)
        in_stages_BHTK = attend_in_stages(q_BHTK, k_BHLK, v_BHLK, visible)
        torch.testing.assert_close(attend_fused(q_BHTK, k_BHLK, v_BHLK, visible), in_stages_BHTK, **EXACT)


@pytest.mark.slow
@few
@given(cases())
def test_the_model_is_the_same_whichever_attention_is_faster(case: Case):
    results = []
    for in_stages in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(attention, "stages_are_faster", lambda q, k, choice=in_stages: choice)
            loss = case.model.loss(case.packed()).total
            results.append({"loss": loss, **gradients(case.model, loss)})
    torch.testing.assert_close(*results, **EXACT)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
@pytest.mark.parametrize("norm_order", ["pre", "post"])
def test_encoder_blocks_with_a_causal_mask_are_a_decoder_only_model(norm_order: str, positions: str):
    model = make(tiny_config(norm_order=norm_order, positions=positions, num_kv_heads=1), seed=3).encoder
    x_BTD = normal(2, 7, 18)

    def run(x_BTD: Tensor, caches: list[SelfCache] | None = None, start: int = 0) -> Tensor:
        grid, rotation = Grid.padded(x_BTD[..., 0]), model.rotary(x_BTD.shape[1], start)
        for i, block in enumerate(model.blocks):
            x_BTD = block(x_BTD, Visible(causal=True), grid, rotation, caches[i] if caches else None)
        return x_BTD

    whole_BTD, changed_BTD = run(x_BTD), x_BTD.clone()
    changed_BTD[:, 4:] += 1
    assert torch.equal(run(changed_BTD)[:, :4], whole_BTD[:, :4])

    caches = [SelfCache() for _ in model.blocks]
    parts = [run(x_BTD[:, a:b], caches, start=a) for a, b in [(0, 3), (3, 4), (4, 6), (6, 7)]]  # a prompt, then more
    torch.testing.assert_close(torch.cat(parts, dim=1), whole_BTD, **EXACT)


def test_encoder_blocks_are_an_encoder_only_model_padded_or_packed():
    model = make(tiny_config(), seed=3).encoder
    keys_BS = torch.tensor([[True] * 5, [True, True, True, False, False]])
    x_BSD, packed = normal(2, 5, 18), Grid.packed(keys_BS)
    padded_BSD = model(x_BSD, Visible(keys=keys_BS), Grid.padded(keys_BS))
    packed_BSD = packed.spread(model(packed.collect(x_BSD), Visible(keys=keys_BS), packed))
    torch.testing.assert_close(packed_BSD[keys_BS], padded_BSD[keys_BS], **EXACT)
    x_BSD[0, -1] += 1  # a piece sees every piece of its row, and of no other row
    changed_BSD = model(x_BSD, Visible(keys=keys_BS), Grid.padded(keys_BS))
    assert not torch.equal(changed_BSD[0, 0], padded_BSD[0, 0])
    assert torch.equal(changed_BSD[1], padded_BSD[1])
