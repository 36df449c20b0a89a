"""A translator inside somebody else's program: it leaves torch's threads alone, does not stop an event loop, and says how it is called."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError
from limelight.translator import Translator

FOLDER = Path(__file__).parents[1] / "bundles" / "format-1"
TEXTS = ["three seven one", "two", "nine nine four", "zero one"]


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def threads_in_a_new_thread() -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


@pytest.mark.parametrize("threads", [1, 2])
def test_loading_and_translating_leave_torch_its_threads(threads: int, three_threads: None) -> None:
    seen: set[int] = set()
    with Translator.load(FOLDER, device="cpu", engine="torch", threads=threads) as translator:
        assert torch.get_num_threads() == 3
        search = translator.engine.search

        def watched(*arguments: Any) -> Any:
            seen.add(torch.get_num_threads())
            return search(*arguments)

        translator.engine.search = watched  # type: ignore[method-assign]
        translator.batch_pieces = 4
        assert [one.text for one in translator.translate(TEXTS)][1] == "zwei"
        translator.score(["one"], ["eins"])
        assert seen == {1}, "each batch has one thread, wherever it runs"
        assert torch.get_num_threads() == 3 and threads_in_a_new_thread() == 3


@pytest.mark.slow
def test_an_event_loop_goes_on_while_threads_translate() -> None:
    async def main(translator: Translator) -> tuple[list[list[str]], int]:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                beats += 1
                await asyncio.sleep(0)

        beating = asyncio.create_task(beat())
        found = await asyncio.gather(*(asyncio.to_thread(translator.translate, [text] * 3) for text in TEXTS * 4))
        beating.cancel()
        return [[one.text for one in texts] for texts in found], beats

    with Translator.load(FOLDER, device="cpu", threads=1) as translator:
        alone = [one.text for one in translator.translate(TEXTS)]
        found, beats = asyncio.run(main(translator))
    assert found == [[text] * 3 for text in alone * 4] and beats > len(found)


def test_settings_of_the_search_are_shown_their_place() -> None:
    with Translator.load(FOLDER, device="cpu", threads=1) as translator:
        with pytest.raises(ConfigError, match=r"search=\{'beam': 2\}"):
            translator.translate(["one"], beam=2)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match=r"search=\{'sampling': \{'top_k': 5\}\}"):
            translator.translate(["one"], top_k=5)  # type: ignore[arg-type]
        with pytest.raises(ConfigError, match="speed: there is no such argument"):
            translator.translate(["one"], speed=9)  # type: ignore[arg-type]
        assert translator.translate(["one"], search=SearchSettings(beam=2))[0].text == "eins"


def test_a_search_may_be_changed_by_name_and_keeps_what_the_bundle_says() -> None:
    with Translator.load(FOLDER, device="cpu", threads=1) as translator:
        assert len(translator.translate(["one"], search={"beam": 3, "nbest": 3})[0].alternatives) == 2
        translator.settings = translator.settings.changed(search=SearchSettings(beam=3, nbest=3))
        assert len(translator.translate(["one"], search={"length_penalty": 1.0})[0].alternatives) == 2
        assert len(translator.translate(["one"], search={"beam": 2})[0].alternatives) == 1, "the n-best shrinks to the beam"
        assert len(translator.translate(["one"], search={"nbest": 5})[0].alternatives) == 4, "and the beam grows to the n-best"
        with pytest.raises(ConfigError, match="beem"):
            translator.translate(["one"], search={"beem": 3})
        with pytest.raises(TypeError, match="settings by name"):
            translator.translate(["one"], search=3)  # type: ignore[arg-type]
