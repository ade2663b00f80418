"""What the library reads of Python's objects, against what this Python says of them.

    python_reading.py PROGRAM [TEST...]
"""
import importlib
import random
import subprocess
import sys
import types
import unittest

PROGRAM = sys.argv.pop(1)
MODULES = ("argparse", "ast", "asyncio.base_events", "ctypes", "dataclasses", "decimal", "difflib", "doctest", "email.message", "enum",
           "functools", "inspect", "json.decoder", "locale", "pickle", "re", "shutil", "socket", "statistics", "subprocess", "tarfile",
           "threading", "traceback", "typing", "unittest.case", "urllib.request", "uuid", "zipfile")
ODD = """
def f(a,
      b=(1,
         2)):
    x = [i for i in a
         if i
         ]; y = 1

    return (a +



            b)
async def g():
    async with a as b, \\
            c as d:
        yield [await z async for z in
               b]
    try:
        pass
    finally:
        match x:
            case [1, 2]:
                pass
""" + "\n" * 5000 + "z = lambda: (\n" + "\n" * 200 + "1)\n" + "w = " + "+".join(["x"] * 300) + "\n" + "del q" + "\n" * 40 + "q.a.b(" + ",\n".join(["x"] * 100) + ")"


def answers(questions):
    if sys.version_info < (3, 11):
        raise unittest.SkipTest("this Python has other tables")
    done = subprocess.run([PROGRAM], input="\n".join(questions) + "\n", text=True, check=True, stdout=subprocess.PIPE)
    return done.stdout.splitlines()


def codes_in(code, seen):
    if code in seen:
        return
    seen[code] = True
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            codes_in(one, seen)


class Reading(unittest.TestCase):
    def test_lines(self):
        """Each instruction of some thousand functions"""
        codes = {}
        for name in MODULES:
            with open(importlib.import_module(name).__file__, encoding="utf-8") as file:
                codes_in(compile(file.read(), name, "exec"), codes)
        codes_in(compile(ODD, "odd", "exec"), codes)
        self.assertGreater(len(codes), 2000)
        wanted = []
        for code in codes:
            lines = {}
            for start, end, line in code.co_lines():
                lines.update((at, line or 0) for at in range(start, end, 2))
            wanted.append([lines[at] for at in range(0, len(code.co_code), 2)])
        found = answers(f"lines {code.co_firstlineno} {len(code.co_code) // 2} {code.co_linetable.hex()}" for code in codes)
        for code, lines, line in zip(codes, wanted, found):
            self.assertEqual(list(map(int, line.split())), lines, code)

    def test_hostile_lines(self):
        """Tables that no compiler makes: they are read to their end and not further."""
        chance = random.Random(1)
        tables = ["", "f8", "80", "e8", "e9ffffffffffffffffffffffffffffff", "ff" * 4000, "7f" * 4000, "f0" * 100 + "ff" * 100]
        tables += [chance.randbytes(chance.choice((1, 2, 3, 7, 16, 100))).hex() for _ in range(20000)]
        self.assertEqual(len(answers(f"lines {chance.randrange(2**32)} {chance.randrange(1, 50)} {table}" for table in tables)), len(tables))

    def test_texts(self):
        """Characters of each width, halves of pairs, and texts that are too long"""
        texts = ["", "plain", "größe", "函数", "\U0001f600 ok", "\udcff broken \ud800", "a" * 100, "é" * 100, "函" * 100, "\U0001f600" * 100]
        for most in (100, 101, 4096):
            found = answers(f"text {width} {most} {text.encode(encoding, 'surrogatepass').hex()}"
                            for text in texts for width, encoding in ((1, "latin-1"), (2, "utf-16-le"), (4, "utf-32-le"))
                            if max(map(ord, text), default=0) < {1: 256, 2: 65536, 4: 2**32}[width])
            wanted = [text for text in texts for width in (1, 2, 4) if max(map(ord, text), default=0) < {1: 256, 2: 65536, 4: 2**32}[width]]
            self.assertEqual(len(found), len(wanted))
            for text, line in zip(wanted, found):
                written, cut = line.rsplit(" ", 1)
                whole = "".join("\ufffd" if 0xd800 <= ord(c) < 0xe000 else c for c in text)
                fits = whole.encode()[:most].decode("utf-8", "ignore")
                self.assertEqual((bytes.fromhex(written).decode(), bool(int(cut))), (fits, fits != whole))


unittest.main()
