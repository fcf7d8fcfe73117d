"""The search space of scoring functions, exactly (the paper's Sec. III and IV-A). Standard library only."""
