"""Writes the example of configs/experiments/fit_digits.yaml: a table of handwritten digits and an untrained network.

The digits are scikit-learn's copy (pip install scikit-learn) of the test set of the UCI "Optical Recognition of Handwritten Digits" data by E. Alpaydin and
C. Kaynak, 1998, licensed CC BY 4.0: 1,797 images of 8 x 8 pixels with values 0..16. Columns p00..p63 are pixel/16 as float32 and label is the digit.

Usage: python cmd/peers/digits.py configs/experiments/digits
"""
import sys
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from sklearn.datasets import load_digits

out = sys.argv[1]
data = load_digits()
cols = {f"p{i:02d}": (data.data[:, i] / 16).astype(np.float32) for i in range(64)}
cols["label"] = data.target.astype(np.int8)
pq.write_table(pa.table(cols), f"{out}/digits.parquet", row_group_size=512, compression="zstd")

torch.manual_seed(0)
net = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(),
    torch.nn.Conv2d(16, 32, 3, stride=2, padding=1), torch.nn.ReLU(),
    torch.nn.Flatten(), torch.nn.Linear(32 * 4 * 4, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10),
).eval()
warnings.simplefilter("ignore")
torch.onnx.export(net, torch.zeros(2, 1, 8, 8), f"{out}/cnn.onnx", input_names=["image"], output_names=["logits"],
                  dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}}, opset_version=17, dynamo=False)
