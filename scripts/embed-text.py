#!/usr/bin/env python3
"""Turns a text file into a C++ raw string literal, so that the program can print its own document."""
import sys

source, target = sys.argv[1:]
text = open(source, encoding="utf-8").read()
# Compilers limit a literal's length; adjacent literals are joined.
chunks = [text[i : i + 8000] for i in range(0, len(text), 8000)]
with open(target, "w", encoding="utf-8") as out:
    for chunk in chunks:
        out.write('R"__text__(' + chunk + ')__text__"\n')
