"""What an operation of the API declares about itself, once: its scope, and whether visitors may read.

Knows how the declarations are read. Refuses to know actors, and what a scope allows: the permission class of `teams` reads them.
"""

from typing import ClassVar, Final

PUBLIC: Final = "public"
SCOPE_FIELD: Final = "x-scope"
"""Where the OpenAPI document tells an operation's scope."""


class Declarations:
    """`scope` is the area that a key must carry, or PUBLIC; a guard test refuses a view that declares none.

    `reads` are the methods that change nothing: they need `<scope>:read`, all others `<scope>:write`. Where `open_to_visitors`
    is set, reading needs no credential; a credential that is sent must still be good and carry the scope.
    """

    scope: ClassVar[str] = ""
    reads: ClassVar[frozenset[str]] = frozenset({"get", "head", "options"})
    open_to_visitors: ClassVar[bool] = False

    @classmethod
    def needed_scope(cls, method: str) -> str:
        """`runs:read`, or PUBLIC."""
        if cls.scope == PUBLIC:
            return PUBLIC
        return f"{cls.scope}:{'read' if method.lower() in cls.reads else 'write'}"

    @classmethod
    def admits_visitors(cls, method: str) -> bool:
        return cls.scope == PUBLIC or (cls.open_to_visitors and method.lower() in cls.reads)
