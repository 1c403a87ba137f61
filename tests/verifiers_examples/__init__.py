"""The example packages of the verifiers project, pushed, checked and evaluated here exactly as they are: N of N with reasons."""
