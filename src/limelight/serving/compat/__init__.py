"""Two public dialects, LibreTranslate's and DeepL's, serve clients that speak them already."""
