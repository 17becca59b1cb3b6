"""The experiments of the paper: data sets, runs, figures and report, and a study of correlated groups.

Each part returns data and prints nothing; :mod:`groupowl_paper.command` is the command ``groupowl reproduce``.
"""
