"""Commands of `manage.py` for operators."""
