from broken_import.tasks import BrokenTaskset

__all__ = ["BrokenTaskset"]
