"""The numbers that `limelight.training.choose` decides by. Those without a reason beside them were set by hand, after trials on tens of
thousands of pairs; what was measured with care stands in docs/experiments.md.
"""

from typing import Final

# The least text, in target pieces, for each size, smallest first. Set by hand, and above `small` nothing was tried.
TEXT_FOR: Final = {"tiny": 0, "small": 150_000, "base": 5_000_000, "big": 100_000_000}
SEEN_PER_PARAMETER: Final = (
    1.5  # target pieces in the whole run; with fewer a smaller model is better (docs/experiments.md)
)
STEPS_WANTED: Final = 4_000  # the batch grows only when there are more than enough steps
BATCH: Final = (3_072, 25_000)  # target pieces of a step: the least that keeps two cores busy, and the paper's (5.1)
BATCHES_OF_TEXT: Final = 10  # at least: else a long run on a short text would see all of it several times in a step
LEAST_BATCH: Final = 512  # target pieces that a step may see of any text
MOST_AT_ONCE: Final = 16_384  # cells of one batch on a CPU: more are no faster
MEMORY_TO_USE: Final = 0.6  # of what is free: long sentences need more than the mean that was measured
SHARE_TO_CALIBRATE, LONGEST_CALIBRATION = 0.02, 20.0
CALIBRATION_FOR_STEPS: Final = 2.0  # seconds: when the steps are given, only the threads depend on it
LEAST_TRAINING: Final = 5.0  # seconds, however little of the budget is left
VALIDATIONS: Final = 20
BETWEEN_VALIDATIONS: Final = 20.0  # seconds of training at least: an untrained model takes long to say nothing
VALIDATION_SHARE: Final = 0.05  # of the time; what it really takes is measured, and the steps follow
EPOCHS_WITHOUT_BUDGET: Final = 40
LEAST_PIECES_WITHOUT_BUDGET: Final = 10_000_000
PATIENCE: Final = 8
# (epochs, dropout): the more often a text is seen, the more a model learns it by heart.
DROPOUT: Final = ((40.0, 0.3), (8.0, 0.2), (0.0, 0.1))
RATE_AT_256: Final = 2e-3  # the peak; half of it at twice the width
CLIP: Final = 1.0
FINE_TUNING_RATE: Final = 0.25  # of the rate that a new model of this width would get
