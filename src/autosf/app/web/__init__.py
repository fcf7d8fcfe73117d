"""`autosf serve`: the live view of a search, the explorer of a model, and their JSON API, on one small server."""
