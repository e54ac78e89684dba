"""Trains exported networks full-batch with onnxrl fit --optimizer lbfgs and the same networks with PyTorch's L-BFGS, and compares loss and evaluations.

    python cmd/peers/fit_lbfgs.py --binary ./onnxrl [--engine ort] [--rows 200] [--iterations 100] [--seeds 9] [--case NAME…]

Both sides begin with the same weights, see all rows at once, keep 15 updates and stop at the same limit of iterations; PyTorch searches lines with strong_wolfe. Compared are the evaluations
until the loss that both reach, up to 1e-3 of the whole descent, as the geometric mean of onnxrl's over PyTorch's over the seeds. The exit status is 1 where that of a network is more than 1 by
more than its standard error. Both evaluate the same points until roundings part them after some thirty evaluations; then a seed is a draw. Needs what fit_torch.py needs.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import torch

import fit_torch as peer

CASES = ["mlp", "cnn_eval", "encoder"]
MEMORY, SLACK = 15, 1e-3


def train(model, x, y, outputs, iterations):
    """Returns the lowest loss after every evaluation."""
    model.eval()
    opt = torch.optim.LBFGS(model.parameters(), lr=1, max_iter=iterations, max_eval=100 * iterations, tolerance_grad=1e-5, tolerance_change=0, history_size=MEMORY, line_search_fn="strong_wolfe")
    best = []

    def closure():
        opt.zero_grad()
        out = model(*x.values())
        out = out if isinstance(out, tuple) else (out,)
        loss = sum(peer.LOSSES[kind](o, y[n]) for o, (n, (kind, _)) in zip(out, outputs.items()))
        loss.backward()
        best.append(min(loss.item(), best[-1] if best else float("inf")))
        return loss

    opt.step(closure)
    return best


def reached(losses, target):
    """Returns the evaluations after which a loss of (evaluations, loss) pairs is at most target, or None."""
    return next((n for n, loss in losses if loss <= target), None)


def compare(name, folder, args, seed):
    """Returns PyTorch's and our (evaluations, lowest loss) pairs."""
    make_model, inputs, outputs, o = peer.cases()[name]
    torch.manual_seed(seed)
    model = make_model()
    with torch.no_grad():
        for q in model.parameters():
            q.add_(0.01 * torch.randn_like(q))
    x, y, csv = peer.make(inputs, outputs, args.rows)
    folder.mkdir()
    peer.export(model, x, outputs, str(folder / "model.onnx"), **o)
    (folder / "data.csv").write_text(csv)
    terms = "".join(f"  - {{output: {n}, kind: {loss}}}\n" for n, (loss, _) in outputs.items())
    (folder / "fit.yaml").write_text(
        f"model: {folder / 'model.onnx'}\ndata:\n  path: {folder / 'data.csv'}\n  inputs: {{{', '.join(f'{n}: [{n}_*]' for n in inputs)}}}\n"
        f"  targets: {{{', '.join(f'{n}: [to_{n}_*]' for n in outputs)}}}\nloss:\n{terms}batch: {args.rows}\n"
        f"full_batch: {{method: lbfgs, memory: {MEMORY}, max_iterations: {args.iterations}, restart: {args.iterations}, grad_tol: 1e-5}}\n")
    run = subprocess.run([args.binary, "fit", str(folder / "fit.yaml"), "--dir", str(folder / "run"), "--engine", args.engine, "-q"], capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(f"{name}, seed {seed}: {run.stderr.strip().splitlines()[-1]}")
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    ours = [(int(v["train/evaluations"]), v["train/loss"]) for v in (line.get("values", line) for line in lines) if "train/evaluations" in v]
    return list(enumerate(train(model, x, y, outputs, args.iterations), 1)), ours


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--binary", default="./onnxrl")
    p.add_argument("--engine", default="auto")
    p.add_argument("--rows", type=int, default=200)
    p.add_argument("--iterations", type=int, default=100)
    p.add_argument("--seeds", type=int, default=9)
    p.add_argument("--case", nargs="*")
    args = p.parse_args()
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)
    bad = 0
    with tempfile.TemporaryDirectory() as tmp:
        for name in args.case or CASES:
            logs, lower, fewer = [], 0, 0
            for seed in range(1, args.seeds + 1):
                theirs, ours = compare(name, pathlib.Path(tmp) / f"{name}-{seed}", args, seed)
                target = max(theirs[-1][1], min(loss for _, loss in ours))
                target += SLACK * (theirs[0][1] - target)
                need, took = reached(ours, target), reached(theirs, target)
                logs.append(math.log(need / took))
                fewer += need <= took
                lower += min(loss for _, loss in ours) <= theirs[-1][1]
                print(f"{name:12s} seed {seed}: loss {theirs[0][1]:.6g} -> PyTorch {theirs[-1][1]:.6g} in {theirs[-1][0]} evaluations, onnxrl {ours[-1][1]:.6g} in {ours[-1][0]}; to {target:.6g}: PyTorch {took}, onnxrl {need}", flush=True)
            mean = sum(logs) / len(logs)
            error = math.sqrt(sum((x - mean) ** 2 for x in logs) / max(1, len(logs) - 1) / len(logs))
            ok = mean <= error
            print(f"{name:12s} evaluations to the same loss, geometric mean of {args.seeds} seeds: {math.exp(mean):.3f} ± {error:.3f} x PyTorch's, no more in {fewer}; the lower loss in the end in {lower}{'' if ok else ' MORE'}", flush=True)
            bad += not ok
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
