"""What every app builds on: errors, tenancy, clock, outbox, object store. Imports no other app."""
