"""The list to review says of each text how probably it needs no edit, where its translator tells that."""

from dataclasses import replace
from pathlib import Path

import pytest

from limelight.bundle.confidence import Calibration, Curve
from limelight.cli.translate.review import write_review
from limelight.documents.document import translate_document
from limelight.translator.parts import join_parts
from limelight.translator.sentences import SourceSentence
from limelight.translator.translation import Translation, recall

CURVE = Curve(knots=((0.0, 0.0), (1.0, 1.0)))


def made(text: str, confidence: float, unedited: float | None) -> Translation:
    return replace(recall(text, text.upper()), confidence=confidence, unedited=unedited, source_pieces=1)


@pytest.mark.parametrize("known", [True, False])
def test_the_list_tells_how_many_need_no_edit(tmp_path: Path, known: bool) -> None:
    chances = {"one": (0.1, 0.25), "two": (0.5, 0.75), "three": (0.9, 0.5)}
    told = {text: made(text, sure, chance if known else None) for text, (sure, chance) in chances.items()}
    done = translate_document(b"one\ntwo\nthree\n", "txt", ("en", "de"), lambda texts: [told[text] for text in texts])
    for ending in ("tsv", "html"):
        write_review(tmp_path / f"review.{ending}", [(Path("a.txt"), done)], ("en", "de"))
    rows = [line.split("\t") for line in (tmp_path / "review.tsv").read_text("utf-8").splitlines()]
    assert [row[-1] for row in rows] == ["unedited", *(["0.250", "0.750"] if known else ["", ""])]
    page = (tmp_path / "review.html").read_text("utf-8")
    assert ("Of all, about 2 should need no edit at all" in page) is known
    assert ("25 of 100" in page) is known


def test_sentences_of_a_text_need_no_edit_together() -> None:
    parts = [SourceSentence("one.", after=" "), SourceSentence("two.")]
    assert join_parts("one. two.", parts, [made("one.", 0.9, 0.5), made("two.", 0.9, 0.5)]).unedited == pytest.approx(0.25)
    assert join_parts("one. two.", parts, [made("one.", 0.9, 0.5), made("two.", 0.9, None)]).unedited is None


def test_a_bundle_without_the_curve_is_written_as_before_and_claims_nothing() -> None:
    bare = Calibration(words=CURVE, sentences=CURVE, lines=9)
    assert bare.expect_unedited(0.9, 3) is None
    assert bare.changed(unedited=CURVE).expect_unedited(1.0, 3) == pytest.approx(1.0)
