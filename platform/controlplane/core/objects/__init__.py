"""The object store: artifacts by key, in a local directory or in S3. `store()` is the one that the settings name."""

from controlplane.core.objects.keys import MissingObject, ObjectStore, StoredObject, content_key
from controlplane.core.objects.selection import store

__all__ = ["MissingObject", "ObjectStore", "StoredObject", "content_key", "store"]
