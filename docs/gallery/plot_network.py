"""
Pruning and tying the neurons of a network
==========================================

The norm is useful beyond linear models. Here it regularizes a network with one hidden layer: a row has all incoming and
outgoing weights of one neuron. Neurons that are not needed become exactly zero and can be removed. Decreasing weights
also tie neurons: several get equal norms. The only function of this library that training needs is
:func:`groupowl.owl_prox`.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import log_softmax
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import groupowl as go

# %%
# Images of handwritten digits, 64 pixels each, and a network of 48 hidden neurons. ``W`` has a row for each neuron: the
# weights of the pixels, of the constant, and of the ten classes.

digits = load_digits()
X = np.column_stack([digits.data / 16.0, np.ones(len(digits.data))])
X, X_test, y, y_test = train_test_split(X, digits.target, test_size=0.3, random_state=0)
Y = np.eye(10)[y]
n_neurons, n_inputs = 48, X.shape[1]


def scores(W, X):
    return np.tanh(X @ W[:, :n_inputs].T) @ W[:, n_inputs:]


def gradient(W):
    """Gradient of the mean log-loss, by the chain rule."""
    hidden = np.tanh(X @ W[:, :n_inputs].T)
    errors = (np.exp(log_softmax(hidden @ W[:, n_inputs:], axis=1)) - Y) / len(X)
    inner = (errors @ W[:, n_inputs:].T) * (1.0 - hidden**2)
    return np.hstack([inner.T @ X, hidden.T @ errors])


# %%
# Training is proximal gradient descent with momentum: a step along the gradient, then the prox of the norm. A smaller
# penalty would prune less; 0 would be an ordinary network.


def train(weights, alpha, step=0.5, n_steps=300):
    W = 0.3 * np.random.default_rng(0).standard_normal((n_neurons, n_inputs + 10))
    move = np.zeros_like(W)
    for _ in range(n_steps):
        before = W
        W = go.owl_prox(W + 0.9 * move - step * gradient(W + 0.9 * move), alpha * weights, step=step)
        move = W - before
    return W


sequences = {
    "no penalty": (go.weights.constant(n_neurons), 1e-12),
    "equal weights": (go.weights.constant(n_neurons), 0.01),
    "decreasing weights": (go.weights.oscar(n_neurons), 0.012),
}
networks = {name: train(weights, alpha) for name, (weights, alpha) in sequences.items()}
for name, W in networks.items():
    norms = np.linalg.norm(W, axis=1)
    kept = norms[norms > 0.0]
    n_values = len(np.unique(np.round(kept / kept.max(), 6)))
    accuracy = np.mean(scores(W, X_test).argmax(axis=1) == y_test)
    print(f"{name}: {len(kept)} neurons with {n_values} different norms, test accuracy {accuracy:.3f}")

# %%
# The norms of the neurons, sorted. With decreasing weights those that are left share few norms.

figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for name, W in networks.items():
    axes.plot(1 + np.arange(n_neurons), -np.sort(-np.linalg.norm(W, axis=1)), "o-", markersize=4, label=name)
axes.set(xlabel="neuron, by norm", ylabel="norm of its weights")
axes.legend()

# %%
# With PyTorch the same line follows the step of any optimizer, and :func:`groupowl.owl_norm` may be added to a loss:
# both functions take tensors and return tensors (``pip install groupowl[array-api]``).
#
# .. code-block:: python
#
#    optimizer.step()
#    with torch.no_grad():
#        W.copy_(go.owl_prox(W, alpha * weights, step=learning_rate))
