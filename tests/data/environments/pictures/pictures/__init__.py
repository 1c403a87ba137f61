"""Asks about a picture: one black pixel."""

from collections.abc import Iterator

import verifiers.v1 as vf

__all__ = ["PicturesTaskset"]

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="


class PicturesTask(vf.Task[vf.TaskData]):
    @vf.reward
    async def says_black(self, trace: vf.Trace) -> float:
        return float("black" in (trace.last_reply or ""))


class PicturesTaskset(vf.Taskset[PicturesTask, vf.TasksetConfig]):
    def load(self) -> Iterator[PicturesTask]:
        parts = [{"type": "text", "text": "Which colour?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
        yield PicturesTask(vf.TaskData(prompt=[{"role": "user", "content": parts}]), self.config.task)
