"""Writes log-probabilities, entropies, KL divergences and their gradients as torch.distributions has them.

    python cmd/peers/heads_vectors.py > models/head/testdata/torch.json

Everything is computed in float64. A case's inputs are what the Go graph gets; "grads" are those of sum(cotangent * output) for each output.
"""

import json

import torch
from torch.distributions import Categorical, Independent, Normal, TanhTransform, TransformedDistribution, kl_divergence

torch.set_default_dtype(torch.float64)
gen = torch.Generator().manual_seed(11)


def randn(*shape, scale=1.0):
    # Rounded to float32, so that both sides start from the same numbers.
    return (torch.randn(*shape, generator=gen) * scale).float().double()


def case(name, inputs, wrt, outputs, extra=None):
    """outputs: name -> function of the inputs; gradients with respect to wrt."""
    leaves = {k: v.clone().requires_grad_(k in wrt) for k, v in inputs.items()}
    result = {"name": name, "inputs": {k: {"shape": list(v.shape), "data": v.flatten().tolist()} for k, v in inputs.items()}, "outputs": {}}
    result.update(extra or {})
    for out, f in outputs.items():
        y = f(**leaves)
        cotangent = randn(*y.shape)
        grads = torch.autograd.grad((y * cotangent).sum(), [leaves[w] for w in wrt], allow_unused=True)
        result["outputs"][out] = {
            "data": y.flatten().tolist(),
            "cotangent": cotangent.flatten().tolist(),
            "grads": {w: (torch.zeros_like(leaves[w]) if g is None else g).flatten().tolist() for w, g in zip(wrt, grads)},
        }
    return result


def masked(logits, mask):
    return torch.where(mask.bool(), logits, torch.tensor(-1e8))


def categorical(name, sizes, batch=5, with_mask=True, scale=1.5):
    n = sum(sizes)
    mask = torch.ones(batch, n)
    if with_mask:
        mask = (torch.rand(batch, n, generator=gen) > 0.4).double()
        at = 0
        for s in sizes:  # at least one valid action, and in row 0 exactly one
            mask[:, at + s - 1] = 1
            mask[0, at:at + s - 1] = 0
            at += s

    def heads(logits, mask):
        return [Categorical(logits=h) for h in masked(logits, mask).split(sizes, 1)]

    logits, other = randn(batch, n, scale=scale), randn(batch, n, scale=scale)
    actions = torch.stack([d.sample() for d in heads(logits, mask)], 1).double()
    return case(
        name,
        {"logits": logits, "other": other, "mask": mask, "actions": actions},
        ["logits", "other"],
        {
            "log_prob": lambda logits, other, mask, actions: sum(d.log_prob(actions[:, i]) for i, d in enumerate(heads(logits, mask))),
            "entropy": lambda logits, other, mask, actions: -sum((d.probs * torch.where(d.probs > 0, d.logits, torch.zeros(()))).sum(1) for d in heads(logits, mask)),
            "kl": lambda logits, other, mask, actions: sum(
                (p.probs * torch.where(p.probs > 0, p.logits - q.logits, torch.zeros(()))).sum(1) for p, q in zip(heads(logits, mask), heads(other, mask))
            ),
        },
        {"sizes": sizes, "mode": [[int(d.probs[b].argmax()) for d in heads(logits, mask)] for b in range(batch)]},
    )


def gaussian(name, a, shared, batch=4):
    shape = (a,) if shared else (batch, a)

    def dist(mean, log_std):
        return Independent(Normal(mean, log_std.exp().expand_as(mean)), 1)

    return case(
        name,
        {"mean": randn(batch, a), "log_std": randn(*shape, scale=0.5), "mean2": randn(batch, a), "log_std2": randn(*shape, scale=0.5), "actions": randn(batch, a, scale=2)},
        ["mean", "log_std", "mean2", "log_std2"],
        {
            "log_prob": lambda mean, log_std, mean2, log_std2, actions: dist(mean, log_std).log_prob(actions),
            "entropy": lambda mean, log_std, mean2, log_std2, actions: dist(mean, log_std).entropy(),
            "kl": lambda mean, log_std, mean2, log_std2, actions: kl_divergence(dist(mean, log_std), dist(mean2, log_std2)),
            "sample": lambda mean, log_std, mean2, log_std2, actions: mean + log_std.exp() * actions,
            "sample_log_prob": lambda mean, log_std, mean2, log_std2, actions: dist(mean, log_std).log_prob(mean + log_std.exp() * actions),
        },
    )


def squashed(name, a, scale, batch=4):
    def dist(mean, log_std):
        # With the cache, log_prob of a sample uses the value before tanh, and is exact.
        return TransformedDistribution(Independent(Normal(mean, log_std.exp().expand_as(mean)), 1), [TanhTransform(cache_size=1)])

    def of(mean, log_std, u):
        base = Independent(Normal(mean, log_std.exp()), 1).log_prob(u)
        return base - TanhTransform().log_abs_det_jacobian(u, torch.tanh(u)).sum(1)

    def through_atanh(mean, log_std, noise, actions):
        d = dist(mean, log_std)
        return d.log_prob(actions)

    actions = torch.tanh(randn(batch, a)).float().double()
    return case(
        name,
        {"mean": randn(batch, a, scale=scale), "log_std": randn(batch, a, scale=0.5), "noise": randn(batch, a), "actions": actions},
        ["mean", "log_std"],
        {
            "sample": lambda mean, log_std, noise, actions: torch.tanh(mean + log_std.exp() * noise),
            "sample_log_prob": lambda mean, log_std, noise, actions: of(mean, log_std, mean + log_std.exp() * noise),
            "log_prob": through_atanh,
        },
    )


def sde(name, latent, a, batch=4):
    """Stable-Baselines3's StateDependentNoiseDistribution; tanh of it is what its SAC draws."""

    def dist(mean, latent, log_std):
        return Independent(Normal(mean, ((latent**2) @ (log_std.exp() ** 2) + 1e-6).sqrt()), 1)

    def drawn(mean, latent, log_std, noise):
        return mean + latent @ (log_std.exp() * noise)

    return case(
        name,
        {"mean": randn(batch, a), "latent": randn(batch, latent), "log_std": randn(latent, a, scale=0.5), "noise": randn(latent, a), "actions": randn(batch, a, scale=2)},
        ["mean", "latent", "log_std"],
        {
            "log_prob": lambda mean, latent, log_std, noise, actions: dist(mean, latent, log_std).log_prob(actions),
            "entropy": lambda mean, latent, log_std, noise, actions: dist(mean, latent, log_std).entropy(),
            "sample": lambda mean, latent, log_std, noise, actions: drawn(mean, latent, log_std, noise),
            "sample_log_prob": lambda mean, latent, log_std, noise, actions: dist(mean, latent, log_std).log_prob(drawn(mean, latent, log_std, noise)),
            "squashed_log_prob": lambda mean, latent, log_std, noise, actions: dist(mean, latent, log_std).log_prob(actions) - TanhTransform().log_abs_det_jacobian(actions, torch.tanh(actions)).sum(1),
        },
    )


print(json.dumps({
    "source": "torch.distributions, torch " + torch.__version__,
    "cases": [
        categorical("categorical", [6]),
        categorical("categorical, all valid", [4], with_mask=False),
        categorical("multi-head", [3] * 16),
        categorical("heads of other sizes", [2, 5, 3]),
        categorical("large logits", [4, 4], scale=60),
        gaussian("diagonal Gaussian", 3, False),
        gaussian("one deviation for all", 4, True),
        squashed("squashed Gaussian", 3, 1.0),
        squashed("far out", 2, 12.0),
        sde("state-dependent exploration", 6, 3),
    ],
}))
