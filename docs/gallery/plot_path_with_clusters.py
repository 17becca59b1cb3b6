"""
A path and its clusters
=======================

The path from nothing selected to many features, on data whose features come in correlated groups.
"""

import groupowl as go
from groupowl.plotting import CoefficientPathDisplay

data = go.datasets.make_correlated_groups(random_state=0)
path = go.group_owl_path(data.X, data.Y, weights="oscar", alphas=40)
CoefficientPathDisplay.from_result(path)
