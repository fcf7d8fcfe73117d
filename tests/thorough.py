"""Whether tests that draw examples draw all of them: `make thorough` does, `make test` a part, for its time."""

import os

THOROUGH = bool(os.environ.get("AUTOSF_THOROUGH"))
