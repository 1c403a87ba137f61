"""The one base class of every wire type, and the public identifier."""

import re
import secrets
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

ID_PATTERN = r"^c[a-z0-9]{24}$"
_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"

PublicId = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Wire(BaseModel):
    """A frozen message between processes. An unknown field is an error that names it, never a silent drop."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants", allow_inf_nan=False)


def new_id() -> str:
    """A public id: 'c' and 24 random characters (124 bits), the shape that the public client insists on."""
    # One draw of the generator instead of 24: ids are made by the hundred when a step's rollouts are stored.
    number, characters = secrets.randbelow(len(_ALPHABET) ** 24), []
    for _ in range(24):
        number, digit = divmod(number, len(_ALPHABET))
        characters.append(_ALPHABET[digit])
    return "c" + "".join(characters)


def is_id(text: str) -> bool:
    return re.fullmatch(ID_PATTERN, text) is not None
