"""One rollout: what came of it, whose failure it is, and what of it is trained on and kept."""
