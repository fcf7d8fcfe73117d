"""Storage and execution: settings, ledger, trials, workers."""
