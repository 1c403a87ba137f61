"""How the tiny base model is made: its tokenizer, its lessons, its training and the gates that it must pass.

Knows nothing of adapters, runs or serving. Nothing at run time imports this package.
"""
