"""Other people's engines and libraries: CTranslate2, Hugging Face, ONNX. Import reports every problem at once; export proves itself."""
