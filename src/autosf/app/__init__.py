"""Front doors: the command line, drawings, reports, serving."""
