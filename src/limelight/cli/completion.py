"""Two functions offer a shell the words that may follow an option, such as presets. A key was pressed and somebody waits: nothing here
loads torch.
"""

EXPORTS = {
    "ctranslate2": "the fast engine of translate and serve",
    "huggingface": "a folder for transformers",
    "onnx": "encoder and decoder step as graphs",
    "web": "a page that translates inside a browser",
}


def presets(incomplete: str) -> list[tuple[str, str]]:
    """presets("b") -> [("base", "6 + 6 layers, 512 wide"), ("big", ...)]"""
    from limelight.model.config import PRESETS

    return [
        (name, f"{size['encoder_layers']} + {size['decoder_layers']} layers, {size['d_model']} wide")
        for name, size in PRESETS.items()
        if name.startswith(incomplete)
    ]


def exports(incomplete: str) -> list[tuple[str, str]]:
    return [(name, purpose) for name, purpose in EXPORTS.items() if name.startswith(incomplete)]
