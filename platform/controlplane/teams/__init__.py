"""Who may act: users, teams, memberships, API keys."""
