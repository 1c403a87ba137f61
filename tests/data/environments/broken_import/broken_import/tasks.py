import a_module_that_nobody_has
import verifiers.v1 as vf


class BrokenTaskset(vf.Taskset):
    def load(self):
        yield a_module_that_nobody_has.task()
