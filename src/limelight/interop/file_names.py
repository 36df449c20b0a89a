"""The files of a published model have fixed names, which cost nothing to know: no torch here."""

CONFIG, GENERATION, CARD = "config.json", "generation_config.json", "README.md"
WHOLE, PICKLED = "model.safetensors", "pytorch_model.bin"
INDEX, PICKLED_INDEX = f"{WHOLE}.index.json", f"{PICKLED}.index.json"
TOKENIZER_CONFIG, TOKENIZER = "tokenizer_config.json", "tokenizer.json"
SOURCE_SPM, TARGET_SPM, JOINT_SPM = "source.spm", "target.spm", "sentencepiece.bpe.model"
VOCAB, TARGET_VOCAB = "vocab.json", "target_vocab.json"
PIECES = (TOKENIZER_CONFIG, TOKENIZER, VOCAB, TARGET_VOCAB, SOURCE_SPM, TARGET_SPM, JOINT_SPM)
