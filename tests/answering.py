"""A command as a program would give it: its exit code, its JSON, and what it said on stderr."""

import json

from autosf.app.cli import run


def answered(capfd, *arguments):
    code = run([*map(str, arguments), "--json"])
    out, err = capfd.readouterr()
    return code, json.loads(out) if code == 0 else None, err
