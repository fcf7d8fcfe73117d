"""AutoSF: finds the bilinear scoring function that suits a knowledge graph (Zhang et al., ICDE 2020)."""

__version__ = "0.1.0"
