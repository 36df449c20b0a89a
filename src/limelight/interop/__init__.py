"""Models come from CTranslate2 and Hugging Face, and go to them, to ONNX and into web pages."""
