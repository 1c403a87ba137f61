"""From groups to committed optimizer steps: batch, journal, figures, report."""
