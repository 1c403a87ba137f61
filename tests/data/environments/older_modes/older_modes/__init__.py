from .modes import load_environment

__all__ = ["load_environment"]
