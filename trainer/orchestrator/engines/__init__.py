"""The pool's engines as a run sees them: which versions answer, how they get there, how much they can take."""
