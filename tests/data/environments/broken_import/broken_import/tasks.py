import verifiers.v1 as vf
from a_module_that_nobody_has import prompts


class BrokenTaskset(vf.Taskset):
    def load(self):
        yield from prompts()
