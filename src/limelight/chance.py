"""SplitMix64 (Steele, Lea and Flood 2014) draws the same random numbers on every machine and in every version.

The generators of Python and NumPy may change their streams between versions, and a run must resume after an upgrade. These constants must
never change.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint64]

WORD: Final = 0xFFFFFFFFFFFFFFFF
STEP: Final = 0x9E3779B97F4A7C15  # the golden ratio, which takes one state to the next
FIRST_MULTIPLIER: Final = 0xBF58476D1CE4E5B9
SECOND_MULTIPLIER: Final = 0x94D049BB133111EB


def mix_bits(words: Words) -> Words:
    """64 bits in, 64 bits out, one to one: each input bit turns about half of the output bits."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(FIRST_MULTIPLIER)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(SECOND_MULTIPLIER)
    return words ^ (words >> np.uint64(31))


def key_of(*numbers: int) -> int:
    """key_of(seed, Purpose.EPOCH, 3): a 64-bit key; other numbers, or the same in another order, give an unrelated key."""
    key = 0
    for number in numbers:
        word = np.array([(key + STEP + number) & WORD], np.uint64)
        key = int(mix_bits(word)[0])
    return key


def draws(key: int, numbers: npt.NDArray[np.int64]) -> Words:
    """One 64-bit random number per number: number i has the same draw whatever stands beside it."""
    return mix_bits(numbers.astype(np.uint64) * np.uint64(STEP) + np.uint64(key))


def scale_to_one(words: Words) -> npt.NDArray[np.float64]:
    """Numbers from 0 to 1, without 1, with all the bits that a float has."""
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
