"""Models come from CTranslate2 and Hugging Face, and go to them and to ONNX. Import reports all problems at once; export proves itself."""
