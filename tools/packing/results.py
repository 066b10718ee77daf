"""Results of runs, as programs of several kinds print them."""

import re


def compact(text: str) -> str:
    """JSON without white space and without the name of its schema; numbers as they were written."""
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|[^\s"]+', text)
    return "".join(tokens).replace('"schema":"weir:run:1",', "", 1)
