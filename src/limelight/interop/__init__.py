"""Other people's formats: CTranslate2, and the models and the hub of Hugging Face. Import reports every problem at once; export proves itself."""
