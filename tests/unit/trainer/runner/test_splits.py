"""Which splits a check can read, by how the configuration of a taskset declares them."""

from enum import Enum, StrEnum
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field

from trainer.runner.splits import splits_of


class Part(Enum):
    EASY = "easy"
    HARD = "hard"


class Half(StrEnum):
    FIRST = "first"
    SECOND = "second"


class Plain(BaseModel):
    level: int = 1


class Listed(BaseModel):
    split: Literal["train", "test"] = "test"


class Enumerated(BaseModel):
    split: Part = Part.EASY


class Named(BaseModel):
    dataset_split: Annotated[Half, Field(description="which half")] = Half.SECOND


class Either(BaseModel):
    split: Literal["train"] | Part | None = None


class Open(BaseModel):
    dataset_split: str = "train"


class HalfOpen(BaseModel):
    split: Literal["train"] | str = "train"


@pytest.mark.parametrize(
    ("config", "names", "open_setting"),
    [
        (Plain(), [""], ""),
        (Listed(), ["test", "train"], ""),
        (Listed(split="train"), ["train", "test"], ""),
        (Enumerated(), ["easy", "hard"], ""),
        (Named(), ["second", "first"], ""),
        (Either(), ["", "train", "easy", "hard"], ""),
        (Open(dataset_split="validation"), ["validation"], "dataset_split"),
        (HalfOpen(), ["train"], "split"),
    ],
)
def test_the_configured_split_comes_first_and_what_cannot_be_listed_is_said(config, names, open_setting):
    splits = list(splits_of(config))
    assert [split.name for split in splits] == names
    assert splits[0].open_setting == open_setting and not splits[0].changes


def test_a_split_is_chosen_by_a_value_that_the_configuration_takes():
    _, hard = splits_of(Enumerated())
    assert Enumerated().model_copy(update=hard.changes) == Enumerated(split=Part.HARD)
