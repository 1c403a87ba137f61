"""Files of rows beside this module: a good one, and bad ones, each with the line that its author is told of, and why."""

from pathlib import Path

GOLDEN = Path(__file__).parent
BAD_FILES = [
    ("broken_json", 3, "not JSON"),
    ("wrong_role", 3, "messages.1.role"),
    ("byte_order_mark", 1, "byte order mark"),
    ("two_schemas", 3, "a row of text in a file of chat rows"),
]
