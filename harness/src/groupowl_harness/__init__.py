"""What the benchmarks and the paper's experiments share: solvers at work in processes of their own, and their judge.

Nothing here imports groupowl, so that whatever it claims is measured and judged from outside.
"""
