"""The section about confidence: its figures are those that were measured, in both forms of the report."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from limelight.evaluation.confidence.calibration import ConfidenceCheck
from limelight.evaluation.confidence.reliability import Reliability, reliability
from limelight.reporting import charts
from limelight.reporting.blocks import Section
from limelight.reporting.formats import write_html, write_markdown
from limelight.training.report.confidence import confidence

sys.path.insert(0, str(Path(__file__).parents[1] / "corpus"))
from reported_manifests import Reader


def measured(off: float) -> Reliability:
    """Twenty words with 0.25 - off, of which five are right, and eighty with 0.75 - off, of which sixty are."""
    right = np.array([1.0] * 5 + [0.0] * 15 + [1.0] * 60 + [0.0] * 20)
    true = np.array([0.25] * 20 + [0.75] * 80)
    return reliability(true - off, right, true**2)


CHECKED = ConfidenceCheck(words=measured(0.0), sentences=measured(0.01), whole=measured(0.02))


def written(section: Section) -> tuple[str, str]:
    return write_markdown("run", [section]), write_html("run", [section])


def test_both_forms_tell_the_error_before_and_after_and_every_bin() -> None:
    for form in written(confidence(CHECKED, 1014)):
        told = re.sub(r"<[^>]*>|\u202f", "", form)
        assert "Fitted on 1014 sentences of the validation set, confidence is off by 0.000 on average" in told
        assert f"what the model claims by itself is off by {CHECKED.words.claimed_error:.3f}" in told
        assert "higher confidence in 68 of 100 cases" in told
        assert "0.2 to 0.3" in told and "0.7 to 0.8" in told
    plain = re.sub("\u202f", "", written(confidence(CHECKED, 1014))[0])
    assert "| 0.2 to 0.3 | 20 | 0.250 | 0.250 |" in plain and "| 0.7 to 0.8 | 80 | 0.750 | 0.750 |" in plain
    assert "| words | 100 | 0.650 | 0.000 |" in plain
    assert "| sentences, by their words | 100 | 0.650 | 0.010 |" in plain
    assert "| sentences, by their probability | 100 | 0.650 | 0.020 |" in plain


def test_an_order_of_words_that_is_chance_is_called_guessing() -> None:
    right = np.array([1.0, 0.0] * 50)
    even = reliability(np.full(100, 0.5), right, np.full(100, 0.9))
    told = written(confidence(ConfidenceCheck(words=even, sentences=CHECKED.sentences, whole=CHECKED.whole), 1014))[0]
    assert "in 50 of 100 cases, which is guessing" in told
    assert "guessing" not in written(confidence(CHECKED, 1014))[0]


def test_a_large_error_is_called_one() -> None:
    far = ConfidenceCheck(words=measured(0.06), sentences=CHECKED.sentences, whole=CHECKED.whole)
    assert "different kinds of text" in written(confidence(far, 9))[0]
    assert "different kinds of text" not in written(confidence(CHECKED, 9))[0]


def test_the_picture_is_drawn_and_says_in_words_what_it_shows() -> None:
    _, html = written(confidence(CHECKED, 1014))
    Reader(html)
    drawn = html[html.index("<svg") : html.index("</svg>")]
    assert "0.2 to 0.3: 0.25 of 20, 0.7 to 0.8: 0.75 of 80" in drawn
    assert "calibrated" in drawn and "as the model claims" in drawn
    assert written(confidence(CHECKED, 1014))[1] == html


def test_without_a_drawing_library_the_figures_are_still_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "INSTALLED", False)
    plain, html = written(confidence(CHECKED, 1014))
    assert "<svg" not in html and "matplotlib is not installed" in html
    assert "0.7 to 0.8" in html and "0.7 to 0.8" in plain


def test_what_was_not_measured_is_said_to_be_missing() -> None:
    for form in written(confidence(None, None)):
        assert "It was not calibrated" in form
    for form in written(confidence(None, 1014)):
        assert "There is no test set" in form
