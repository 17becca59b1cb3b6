"""Which weights should be the default: sequences compared on real data and on known groups.

The rule, written down before the first run. All candidates see the same splits, standardized columns, and alphas
chosen by the same cross-validation, by "min" and by "1se". The test error of a fit is compared as explained deviance,
``1 - error / error of the null model``, in points of 0.01.

1. *Prediction.* A candidate is out if, by "min" or by "1se", on real data or on known groups, its explained deviance is
   lower than that of the best candidate there by more than two standard errors of the mean paired difference (data
   sets are the units) and by more than half a point, or, whatever the standard error, by more than two points.
2. *Selection.* Of those that are left, the best has the largest mean of two figures, each 0 by chance and 1 at best:
   stability (Nogueira's measure over splits) and togetherness (how far the other members of correlated groups are
   selected too). Means are over "min" and "1se", and over data sets within each of the two blocks, real data and known
   groups, which count the same. Real data sets without correlated groups have stability alone.
3. *Ties.* Candidates whose mean is lower than that of the best by less than two standard errors of the paired
   difference tie with it. If "oscar" ties, it stays the default: a change needs evidence. Otherwise the one of the tied
   candidates that selects fewest features becomes the default (geometric mean over data sets and rules, of real data).

Sequences chosen by cross-validation are reported, but are no default: estimators without CV need one sequence.
"""
