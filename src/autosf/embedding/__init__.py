"""Training embeddings for any structure (the paper's Alg. 1), on torch."""
