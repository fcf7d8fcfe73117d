"""Neighbours in the ecosystem: PyKEEN's data sets and models, and ours as theirs."""
