"""Speed beside a plain version or a peer, in one run: `make bench`, or `make bench ONLY=algebra` for one."""
