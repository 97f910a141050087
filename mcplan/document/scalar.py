"""Plain scalars by the core schema of YAML 1.2: ``1e3`` is a number, ``on`` and ``yes`` are text."""

import re

_INT = re.compile(r"[-+]?[0-9]+")
_OCTAL = re.compile(r"0o[0-7]+")
_HEX = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

_LONGEST_INT = 300  # digits; a longer whole number is no double anyway
_LARGEST_INT = 2**1023  # a power of two that is a double; twice as much is none


def plain_scalar(text: str) -> str | int | float | bool | None:
    """Return the value of an unquoted scalar.

    ``.inf`` and ``.nan`` give the float; numbers beyond the range of a double give an infinity. Whether they are
    acceptable is for the caller to say.
    """
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text) if len(text) <= _LONGEST_INT else float(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _HEX.fullmatch(text) or _OCTAL.fullmatch(text):
        value = int(text, 0) if len(text) <= _LONGEST_INT else _LARGEST_INT
        return value if value < _LARGEST_INT else float("inf")
    if _NOT_FINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return text
