"""Exports tiny networks whose weights are tied, or only equal, with both of PyTorch's exporters.

    python cmd/peers/tied_exports.py models/testdata/ties models/fit/testdata/torch

The first folder gets the table of exports that say which weights are one parameter; the second a causal language model with
its rows, configuration and the losses of 20 Adam steps of PyTorch. All weights are drawn here, none is downloaded. It needs
torch, transformers, onnx and onnxscript.
"""

import copy
import json
import pathlib
import sys
import warnings

import onnx
import torch
import transformers as hf
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
VOCAB, TIME, WIDTH = 24, 5, 8


class Logits(nn.Module):
    """A network of transformers as one that gives its logits."""

    def __init__(self, net, argument="input_ids", twice=False):
        super().__init__()
        self.net, self.argument, self.twice = net, argument, twice

    def forward(self, x):
        more = {"decoder_input_ids": x} if self.twice else {}
        if isinstance(self.net, (hf.GPT2LMHeadModel, hf.T5ForConditionalGeneration)):
            # A mask that is given keeps transformers from looking for several sequences in a row.
            more |= {"use_cache": False, "attention_mask": torch.ones_like(x)}
        return self.net(**{self.argument: x}, **more).logits


def gpt2(tied):
    net = hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=VOCAB, n_positions=TIME, n_embd=WIDTH, n_layer=2, n_head=2, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
        tie_word_embeddings=tied, attn_implementation="eager", bos_token_id=0, eos_token_id=0, initializer_range=0.3))
    for name, p in net.named_parameters():
        # An exporter drops the bias of a product where it is zero.
        if "c_" in name and name.endswith("bias"):
            nn.init.normal_(p, std=0.1)
    return Logits(net)


def bert():
    return Logits(hf.BertForMaskedLM(hf.BertConfig(vocab_size=VOCAB, hidden_size=WIDTH, num_hidden_layers=1, num_attention_heads=2, intermediate_size=12,
        max_position_embeddings=TIME, attn_implementation="eager", pad_token_id=None)))


def t5():
    return Logits(hf.T5ForConditionalGeneration(hf.T5Config(vocab_size=VOCAB, d_model=WIDTH, d_kv=4, d_ff=12, num_layers=1, num_decoder_layers=1, num_heads=2,
        relative_attention_num_buckets=4, attn_implementation="eager", tie_word_embeddings=True, decoder_start_token_id=0)), twice=True)


def vit():
    return Logits(hf.ViTForImageClassification(hf.ViTConfig(hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=12, image_size=8, patch_size=4,
        num_channels=1, num_labels=3, attn_implementation="eager")), argument="pixel_values")


class RNN(nn.Module):
    """One weight for every step, which an exporter unrolls."""

    def __init__(self):
        super().__init__()
        self.cell, self.embedding = nn.Linear(2 * WIDTH, WIDTH, bias=False), nn.Embedding(VOCAB, WIDTH)

    def forward(self, x):
        e = self.embedding(x)
        h = torch.zeros_like(e[:, 0])
        for i in range(3):
            h = torch.tanh(self.cell(torch.cat([e[:, i], h], -1)))
        return h @ self.embedding.weight.T


class Clones(nn.Module):
    """Layers that were copied from one and have not been trained."""

    def __init__(self):
        super().__init__()
        layer = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh(), nn.Linear(WIDTH, WIDTH, bias=False))
        nn.init.normal_(layer[0].bias)
        self.layers = nn.ModuleList(copy.deepcopy(layer) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


class Norms(nn.Module):
    """Two equal normalisations of a matrix."""

    def __init__(self):
        super().__init__()
        self.before = nn.LayerNorm([10, WIDTH])
        nn.init.normal_(self.before.weight)
        nn.init.normal_(self.before.bias)
        self.after, self.fc = copy.deepcopy(self.before), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.after(torch.tanh(self.fc(self.before(x))))


TOKENS = lambda n: torch.randint(0, VOCAB, (n, TIME))
CASES = {
    "gpt2_tied": (lambda: gpt2(True), TOKENS), "gpt2_untied": (lambda: gpt2(False), TOKENS), "bert": (bert, TOKENS), "t5": (t5, TOKENS), "vit": (vit, lambda n: torch.randn(n, 1, 8, 8)),
    "rnn": (RNN, TOKENS), "clones": (Clones, lambda n: torch.randn(n, WIDTH)), "norms": (Norms, lambda n: torch.randn(n, 10, WIDTH)),
}
KEPT = ("pkg.torch.onnx.name_scopes", "pkg.torch.export.graph_signature.InputSpec.kind")


def export(net, x, path, dynamo):
    if dynamo:
        torch.onnx.export(net, (x,), path, input_names=["x"], output_names=["y"], dynamic_shapes=({0: torch.export.Dim("b")},), dynamo=True, external_data=False, verbose=False)
    else:
        torch.onnx.export(net, (x,), path, input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "b"}, "y": {0: "b"}}, dynamo=False)
    m = onnx.load(path)
    # What says where a node came from in Python is most of the file.
    for item in [m, m.graph, *m.graph.node, *m.graph.value_info, *m.graph.input, *m.graph.output, *m.graph.initializer]:
        kept = [p for p in item.metadata_props if p.key in KEPT]
        del item.metadata_props[:]
        item.metadata_props.extend(kept)
        item.doc_string = ""
    del m.functions[:]
    onnx.save(m, path)


def losses(net, folder, exporters):
    torch.manual_seed(1)
    rows, targets = TOKENS(32), TOKENS(32)
    lines = [",".join([f"t{i}" for i in range(TIME)] + [f"n{i}" for i in range(TIME)])]
    lines += [",".join(str(int(v)) for v in torch.cat([a, b])) for a, b in zip(rows, targets)]
    net = copy.deepcopy(net)
    adam, record = torch.optim.Adam(net.parameters(), lr=0.01), []
    for step in range(20):
        at = step % 4 * 8
        loss = F.cross_entropy(net(rows[at:at + 8]).flatten(0, 1), targets[at:at + 8].flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        record.append(loss.item())
    for name, path in exporters.items():
        to = folder / name
        to.mkdir(parents=True, exist_ok=True)
        (to / "model.onnx").write_bytes(path.read_bytes())
        (to / "data.csv").write_text("\n".join(lines) + "\n")
        (to / "losses.json").write_text(json.dumps(record) + "\n")
        (to / "fit.yaml").write_text("""model: model.onnx
data:
  path: data.csv
  inputs: {x: [t*]}
  targets: {y: [n*]}
  shuffle: false
loss:
  - {output: y, kind: cross_entropy, axis: -1}
optimizer: {kind: adam, lr: 0.01}
batch: 8
epochs: 5
""")


def main():
    table, fit = map(pathlib.Path, sys.argv[1:3])
    table.mkdir(parents=True, exist_ok=True)
    for name, (make, sample) in CASES.items():
        torch.manual_seed(0)
        net = make().eval()
        paths = {}
        for suffix, dynamo in (("", True), ("_script", False)):
            path = table / f"{name}{suffix}.onnx"
            export(net, sample(3), str(path), dynamo)
            paths[name + suffix] = path
            print(path, path.stat().st_size)
        if name == "gpt2_tied":
            losses(net, fit, paths)
            for path in paths.values():
                path.unlink()


if __name__ == "__main__":
    main()
