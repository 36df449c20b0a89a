"""Reports are made of blocks, which become Markdown and HTML by templates. Read in this order: units, blocks, formats, charts."""
