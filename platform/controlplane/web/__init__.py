"""The single-page app, health and security headers."""
