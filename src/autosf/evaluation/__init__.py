"""Ranks, metrics and triplet classification (Sec. V-B, V-C)."""
