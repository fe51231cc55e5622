"""Makes the pages of docs/reference that say what the code says, so that they cannot say anything else.

A page is one file here with a function `page() -> str`; `pages.py` lists them. Run by `scripts/generate-docs`; a test
fails while the committed text is not what this makes.
"""
