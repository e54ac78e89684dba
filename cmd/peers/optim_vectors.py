"""Writes trajectories of PyTorch's optimisers and schedulers as test vectors.

    python cmd/peers/optim_vectors.py > runtime/optim/testdata/torch.json

Each optimiser minimises the same small non-convex function for ten steps, in
float32, with the gradients recorded, so that the Go side needs no autograd: it
replays the recorded gradients and compares the parameters. LAMB is not part of
PyTorch; it is written here with tensor operations after You et al. 2020,
Algorithm 2, with bias correction.
"""

import json

import torch

STEPS = 10
N = 21  # not a multiple of any vector width


def start(dtype=torch.float32):
    g = torch.Generator().manual_seed(5)
    return torch.randn(N, generator=g, dtype=torch.float64).to(dtype)


def loss(p, k):
    a = torch.arange(1, N + 1, dtype=p.dtype) / N
    return (a * p**2).sum() / 2 + torch.sin(3 * p + k).sum()


class LAMB(torch.optim.Optimizer):
    def __init__(self, params, lr, betas=(0.9, 0.999), eps=1e-6, weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                s = self.state[p]
                if not s:
                    s.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                s["t"] += 1
                s["m"] = b1 * s["m"] + (1 - b1) * p.grad
                s["v"] = b2 * s["v"] + (1 - b2) * p.grad**2
                mhat = s["m"] / (1 - b1 ** s["t"])
                vhat = s["v"] / (1 - b2 ** s["t"])
                u = mhat / (vhat.sqrt() + group["eps"]) + group["weight_decay"] * p
                p -= group["lr"] * (p.norm() / u.norm()) * u


class Lion(torch.optim.Optimizer):
    """Lion after Chen et al. 2023, Algorithm 2."""

    def __init__(self, params, lr, betas=(0.9, 0.99), weight_decay=0.0):
        super().__init__(params, dict(lr=lr, betas=betas, weight_decay=weight_decay))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in group["params"]:
                s = self.state[p]
                if not s:
                    s["m"] = torch.zeros_like(p)
                u = torch.sign(b1 * s["m"] + (1 - b1) * p.grad) + group["weight_decay"] * p
                p -= group["lr"] * u
                s["m"] = b2 * s["m"] + (1 - b2) * p.grad


class InsideRMSProp(torch.optim.Optimizer):
    """RMSProp with epsilon under the root, as TensorFlow has it; there, squares begin at 1."""

    def __init__(self, params, lr, alpha, eps, first=0.0):
        super().__init__(params, dict(lr=lr, alpha=alpha, eps=eps, first=first))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                s = self.state[p]
                if not s:
                    s["v"] = torch.full_like(p, group["first"])
                s["v"] = group["alpha"] * s["v"] + (1 - group["alpha"]) * p.grad**2
                p -= group["lr"] * p.grad / (s["v"] + group["eps"]).sqrt()


O = torch.optim
CASES = [
    ({"kind": "sgd", "lr": 0.05}, lambda p: O.SGD(p, 0.05)),
    ({"kind": "sgd", "lr": 0.05, "decay": 0.1}, lambda p: O.SGD(p, 0.05, weight_decay=0.1)),
    ({"kind": "sgd", "lr": 0.02, "momentum": 0.9}, lambda p: O.SGD(p, 0.02, momentum=0.9)),
    ({"kind": "sgd", "lr": 0.02, "momentum": 0.9, "dampening": 0.3, "decay": 0.1},
     lambda p: O.SGD(p, 0.02, momentum=0.9, dampening=0.3, weight_decay=0.1)),
    ({"kind": "sgd", "lr": 0.02, "momentum": 0.8, "nesterov": True, "decay": 0.05},
     lambda p: O.SGD(p, 0.02, momentum=0.8, nesterov=True, weight_decay=0.05)),
    ({"kind": "rmsprop", "lr": 0.01}, lambda p: O.RMSprop(p, 0.01)),
    ({"kind": "rmsprop", "lr": 0.01, "alpha": 0.9, "eps": 1e-3, "eps_inside": True},
     lambda p: InsideRMSProp(p, 0.01, 0.9, 1e-3)),
    ({"kind": "rmsprop", "lr": 0.01, "eps": 1e-5, "eps_inside": True, "ones": True},
     lambda p: InsideRMSProp(p, 0.01, 0.99, 1e-5, 1.0)),
    ({"kind": "rmsprop", "lr": 0.01, "alpha": 0.95, "momentum": 0.9, "decay": 0.1},
     lambda p: O.RMSprop(p, 0.01, alpha=0.95, momentum=0.9, weight_decay=0.1)),
    ({"kind": "rmsprop", "lr": 0.01, "alpha": 0.9, "eps": 1e-5, "centred": True},
     lambda p: O.RMSprop(p, 0.01, alpha=0.9, eps=1e-5, centered=True)),
    ({"kind": "rmsprop", "lr": 0.01, "alpha": 0.9, "eps": 1e-5, "centred": True, "momentum": 0.5},
     lambda p: O.RMSprop(p, 0.01, alpha=0.9, eps=1e-5, centered=True, momentum=0.5)),
    ({"kind": "adam", "lr": 0.01}, lambda p: O.Adam(p, 0.01)),
    ({"kind": "adam", "lr": 0.01, "beta1": 0.5, "beta2": 0.9, "eps": 1e-5, "decay": 0.1},
     lambda p: O.Adam(p, 0.01, betas=(0.5, 0.9), eps=1e-5, weight_decay=0.1)),
    ({"kind": "adam", "lr": 0.01, "beta1": -1}, lambda p: O.Adam(p, 0.01, betas=(0.0, 0.999))),
    ({"kind": "adam", "lr": 0.02, "beta2": 0.8, "amsgrad": True},
     lambda p: O.Adam(p, 0.02, betas=(0.9, 0.8), amsgrad=True)),
    ({"kind": "adamw", "lr": 0.01, "decay": 0.3}, lambda p: O.AdamW(p, 0.01, weight_decay=0.3)),
    ({"kind": "adamw", "lr": 0.01, "decay": 0.3, "amsgrad": True},
     lambda p: O.AdamW(p, 0.01, weight_decay=0.3, amsgrad=True)),
    ({"kind": "lamb", "lr": 0.02, "decay": 0.1}, lambda p: LAMB(p, 0.02, weight_decay=0.1)),
    ({"kind": "lion", "lr": 0.003, "decay": 0.2}, lambda p: Lion(p, 0.003, weight_decay=0.2)),
]


def trajectory(make):
    p = start().requires_grad_(True)
    opt = make([p])
    grads, params = [], []
    for k in range(STEPS):
        opt.zero_grad()
        loss(p, k).backward()
        grads.append(p.grad.tolist())
        opt.step()
        params.append(p.detach().tolist())
    return {"start": short(start().tolist()), "grads": short(grads), "params": short(params)}


def schedule(make, steps=30):
    p = torch.zeros(1, requires_grad=True)
    opt = O.SGD([p], 0.4)
    s = make(opt)
    values = []
    for _ in range(steps):
        values.append(opt.param_groups[0]["lr"])
        opt.step()
        s.step()
    return values


S = O.lr_scheduler
SCHEDULES = [
    ({"kind": "constant", "initial": 0.4}, lambda o: S.ConstantLR(o, factor=1)),
    ({"kind": "linear", "initial": 0.4, "final": 0.1, "steps": 20},
     lambda o: S.LinearLR(o, 1.0, 0.25, total_iters=20)),
    ({"kind": "cosine", "initial": 0.4, "final": 0.01},
     lambda o: S.CosineAnnealingLR(o, T_max=30, eta_min=0.01)),
    ({"kind": "exponential", "initial": 0.4, "gamma": 0.9}, lambda o: S.ExponentialLR(o, 0.9)),
    ({"kind": "step", "initial": 0.4, "gamma": 0.5, "every": 7}, lambda o: S.StepLR(o, 7, 0.5)),
    ({"kind": "piecewise", "initial": 0.4, "points": [{"at": 5, "value": 0.04}, {"at": 21, "value": 0.004}]},
     lambda o: S.MultiStepLR(o, [5, 21], 0.1)),
    ({"kind": "constant", "initial": 0.4, "warmup": 8, "warmup_from": 0.25},
     lambda o: S.LinearLR(o, 0.25, 1.0, total_iters=8)),
    ({"kind": "cosine", "initial": 0.4, "final": 0.02, "warmup": 6, "warmup_from": 0.5},
     lambda o: S.SequentialLR(o, [S.LinearLR(o, 0.5, 1.0, total_iters=6),
                                  S.CosineAnnealingLR(o, T_max=24, eta_min=0.02)], [6])),
]


def clipping():
    p = start().requires_grad_(True)
    loss(p, 0).backward()
    grads = p.grad.tolist()
    norm = torch.nn.utils.clip_grad_norm_([p], 0.5).item()
    return {"grads": short(grads), "max_norm": 0.5, "norm": norm, "clipped": short(p.grad.tolist())}


def short(x):
    """Nine digits identify a float32."""
    if isinstance(x, list):
        return [short(e) for e in x]
    return float(f"{x:.9g}")


def main():
    torch.set_num_threads(1)
    print(json.dumps({
        "torch": torch.__version__.split("+")[0],
        "optimisers": [{"config": c, **trajectory(m)} for c, m in CASES],
        "schedules": [{"config": c, "total": 30, "values": schedule(m)} for c, m in SCHEDULES],
        "clip": clipping(),
    }, separators=(",", ":")))


if __name__ == "__main__":
    main()
