"""What to train next: Alg. 2 and beyond. Receives training as a function."""
