"""These constants decide a recipe in `recipe.choose`, beside those that a plan needs too (`planning.rules`).

Those without a reason beside them were set by hand, after trials on tens of thousands of pairs; what was measured with care stands in
docs/experiments.md.
"""

from typing import Final

MOST_AT_ONCE: Final = 16_384  # cells of one batch on a CPU: more are no faster
MEMORY_TO_USE: Final = 0.6  # of what is free: long sentences need more than the mean that was measured
SHARE_TO_CALIBRATE, LONGEST_CALIBRATION = 0.02, 20.0
CALIBRATION_FOR_STEPS: Final = 2.0  # seconds: when the steps are given, only the threads depend on it
VALIDATIONS: Final = 20
BETWEEN_VALIDATIONS: Final = 20.0  # seconds of training at least: an untrained model takes long to say nothing
SENTENCES: Final = (100, 500)  # translated at a validation: one for each second of a budget, within these bounds
PATIENCE: Final = 8
CLIP: Final = 1.0
FINE_TUNING_RATE: Final = 0.25  # of the rate that a new model of this width would get
