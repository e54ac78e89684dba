"""Writes the losses that PyTorch's L-BFGS with strong_wolfe meets on three functions, in float64, as test vectors.

    python cmd/peers/lbfgs_vectors.py > runtime/optim/fullbatch/testdata/lbfgs.json

The functions are written again in runtime/optim/fullbatch/torch_test.go. A list has the loss of every evaluation, those of searches along lines included.
"""
import json

import torch

MEMORY, ITERATIONS = 5, 200


def rosenbrock(p):
    return (100 * (p[1:] - p[:-1] ** 2) ** 2 + (1 - p[:-1]) ** 2).sum()


def logistic(p):
    """Logistic regression of 30 rows on as many features as there are parameters, with a little weight decay."""
    i, j = torch.arange(30, dtype=p.dtype), torch.arange(len(p), dtype=p.dtype)
    x = torch.sin((i[:, None] + 1) * (j + 2))
    sign = torch.where(torch.cos(3 * i) > 0, 1.0, -1.0).to(p.dtype)
    return torch.log1p(torch.exp(-sign * (x @ p))).mean() + 1e-3 * (p * p).sum()


def waves(p):
    """A bowl with waves, whose gradient is small where it begins."""
    k = torch.arange(1, len(p) + 1, dtype=p.dtype)
    return 0.01 * (k * p**2 + torch.sin(3 * p) * k).sum()


def losses(f, start):
    p = torch.tensor(start, dtype=torch.float64, requires_grad=True)
    opt = torch.optim.LBFGS([p], lr=1, max_iter=ITERATIONS, max_eval=100 * ITERATIONS, tolerance_grad=1e-5, tolerance_change=0, history_size=MEMORY, line_search_fn="strong_wolfe")
    seen = []

    def closure():
        opt.zero_grad()
        loss = f(p)
        loss.backward()
        seen.append(loss.item())
        return loss

    opt.step(closure)
    return seen


out = {"torch": torch.__version__, "memory": MEMORY, "iterations": ITERATIONS, "cases": []}
for f, start in [(rosenbrock, [-1.2, 1.0] * 5), (logistic, [0.5, -0.5] * 4), (waves, [1.0, -1.0, 0.5, 2.0, -0.25, 0.75])]:
    out["cases"].append({"function": f.__name__, "start": start, "losses": losses(f, start)})
print(json.dumps(out, indent=1))
