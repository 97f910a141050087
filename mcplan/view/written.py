"""Names as matplotlib and Graphviz are to write them: what a file calls a thing is text, whatever signs it holds."""


def drawn(text: str) -> str:
    """Return a text for matplotlib: ``$`` begins no formula, and a label that begins with ``_`` is in the legend."""
    text = text.replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def quoted(text: str) -> str:
    r"""Return a text for a quoted string of DOT: ``"`` does not end it, and ``\`` is a sign like any other."""
    return text.replace("\\", r"\\").replace('"', r"\"")
