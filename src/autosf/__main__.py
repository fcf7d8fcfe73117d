"""`python -m autosf` is `autosf`."""

from autosf.app.cli import main

main()
