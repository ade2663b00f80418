"""Runs a Python program's main() again and again, in a child each.

usage: run_each.py PROGRAM RUNS

RUNS is a file with a JSON list of lists of arguments. Prints a JSON list of each run's exit status and what it
wrote to stderr. Starting Python and reading the program takes longer than most runs do."""

import importlib.util
import json
import os
import sys
import tempfile

program, list_of_runs = sys.argv[1:]
sys.path.insert(0, os.path.dirname(program))
spec = importlib.util.spec_from_file_location("program", program)
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
with open(list_of_runs, encoding="utf-8") as file:
    runs = json.load(file)
said = []
for arguments in runs:
    with tempfile.TemporaryFile() as errors:
        child = os.fork()
        if not child:
            os.dup2(errors.fileno(), 2)
            sys.argv = [program] + arguments
            module.main()
            sys.exit()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        errors.seek(0)
        said.append([status, errors.read().decode()])
print(json.dumps(said))
