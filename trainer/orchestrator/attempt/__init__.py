"""One attempt of a run, an evaluation, a check or an export: its line to the control plane, its pulse and its end."""
