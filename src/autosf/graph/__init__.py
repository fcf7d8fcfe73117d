"""Knowledge graphs: from any file to ids, statistics and known answers."""
