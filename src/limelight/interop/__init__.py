"""Models come from CTranslate2 and Hugging Face, and go to them, to ONNX and into web pages.

Import reports all problems at once; export proves itself.
"""
