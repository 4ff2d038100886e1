"""Position encodings for Transformers: the program pe-bench and what PyTorch needs of it.

`pe_zoo.tasks` has the tasks as datasets, `pe_zoo.torch` the encodings as modules.
"""
