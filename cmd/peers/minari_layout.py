"""Compares data sets in Minari's layout, as onnxrl writes and reads them, with what Minari itself says of them.

    pip install minari==0.5.4 h5py numpy
    python cmd/peers/minari_layout.py ONNXRL FOLDER

FOLDER is a data set of onnxrl record. It is exported, loaded by Minari, written anew by Minari, and imported again: the files of the last must be those of the first.
"""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import minari
import numpy as np
from minari.data_collector import EpisodeBuffer

onnxrl, source = sys.argv[1], pathlib.Path(sys.argv[2])


def run(*args):
    subprocess.run([onnxrl, "dataset", *map(str, args), "--python", sys.executable, "-q"], check=True, stdout=subprocess.DEVNULL)


def digests(folder):
    return [hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(pathlib.Path(folder).glob("*.parquet"))]


with tempfile.TemporaryDirectory() as root:
    root = pathlib.Path(root)
    os.environ["MINARI_DATASETS_PATH"] = str(root)
    (root / "peers").mkdir()
    run("export", source, "--id", "peers/there-v0", "-o", root / "peers/there-v0")
    there = minari.load_dataset("peers/there-v0")
    buffers = [EpisodeBuffer(observations=e.observations, actions=e.actions, rewards=list(e.rewards), terminations=list(e.terminations), truncations=list(e.truncations), infos=e.infos or None) for e in there.iterate_episodes()]
    minari.create_dataset_from_buffers("peers/back-v0", buffers, observation_space=there.observation_space, action_space=there.action_space)
    run("import", root / "peers/back-v0", "-o", root / "back")
    if digests(root / "back") != digests(source):
        sys.exit("the files differ after a way through Minari")
    meta = root / "peers/back-v0/data/metadata.json"
    for key in ("total_episodes", "total_steps"):
        said = json.loads(meta.read_text())
        meta.write_text(json.dumps({**said, key: said[key] + 1}))
        lie = subprocess.run([onnxrl, "dataset", "import", str(root / "peers/back-v0"), "-o", str(root / "lie"), "--python", sys.executable, "-q"], capture_output=True, text=True)
        if lie.returncode != 1 or f"{key} is {said[key] + 1}" not in lie.stderr or list(root.glob("lie*")):
            sys.exit(f"{key} that lies: {lie.stderr}")
        meta.write_text(json.dumps(said))
    steps = sum(len(b.rewards) for b in buffers)
    print(f"{len(buffers)} episodes and {steps} steps are the same after a way through Minari {minari.__version__}")
    if len(buffers) != there.total_episodes or steps != there.total_steps or not np.isfinite(sum(sum(b.rewards) for b in buffers)):
        sys.exit("Minari counts other episodes or steps")
