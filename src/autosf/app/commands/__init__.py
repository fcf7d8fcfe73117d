"""One module per topic; each imports what is heavy inside its functions, so that help stays instant."""
