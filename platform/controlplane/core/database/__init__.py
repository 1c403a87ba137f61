"""Django's PostgreSQL backend plus the tenant's scope. Django looks for `base` in here."""
