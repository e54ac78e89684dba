"""Converts data sets between Minari's layout (0.5: metadata.json and main_data.hdf5) and a stream.

    python minari.py read FOLDER > STREAM
    python minari.py write FOLDER < STREAM

It needs h5py and numpy, and not Minari. Nothing of a data set is executed: HDF5 holds arrays, and the metadata are JSON.

The stream is a line of JSON about the data set, and for each episode a line of JSON with its length, followed by the bytes, little-endian: the T+1 elements of each observation field, T actions, T rewards (float64), T terminations and T truncations (uint8), T log-probabilities (float64) and T+1 action masks (uint8), the last two where the episode's line says so. The line {"end": true} ends it.
"""

import json
import os
import sys

try:
    import h5py
    import numpy as np
except ImportError as e:
    sys.exit(f"the Python package {e.name} is needed: pip install h5py numpy")

FIELD = "observation"


def fail(text):
    sys.exit(text)


def described(name, s):
    """A space of Minari's as a manifest of ours has it."""
    kind = s.get("type")
    if kind == "Box":
        flat = lambda x: [float(v) for v in np.asarray(x, dtype=np.float64).ravel()]
        low, high = flat(s["low"]), flat(s["high"])
        bounds = lambda v: [("-inf" if x == -np.inf else "+inf" if x == np.inf else x) for x in (v[:1] if len(set(v)) == 1 else v)]
        return {"type": "box", "dtype": s["dtype"], "shape": list(s["shape"]), "low": bounds(low), "high": bounds(high)}
    start = np.asarray(s.get("start", 0), dtype=np.int64).ravel().tolist()
    begins = {"start": start} if any(start) else {}
    if kind == "Discrete":
        return {"type": "discrete", "n": [s["n"]], **begins}
    if kind == "MultiDiscrete":
        return {"type": "multi_discrete", "n": np.asarray(s["nvec"]).ravel().tolist(), **begins}
    if kind == "MultiBinary" and isinstance(s["n"], int):
        return {"type": "multi_binary", "n": [s["n"]]}
    fail(f"{name}: a space of type {kind} has no place in a data set, expected Box, Discrete, MultiDiscrete or MultiBinary")


def dtype_of(space):
    return {"box": space.get("dtype"), "multi_binary": "uint8"}.get(space["type"], "int64")


def shape_of(space):
    return {"box": space.get("shape"), "discrete": []}.get(space["type"]) if space["type"] in ("box", "discrete") else [space["n"][0] if space["type"] == "multi_binary" else len(space["n"])]


def data_folder(folder):
    for path in (folder, os.path.join(folder, "data")):
        if os.path.exists(os.path.join(path, "metadata.json")):
            return path
    fail(f"{folder}: there is no metadata.json, and none in data; is it a data set of Minari 0.5 or later?")


def array(group, key, rows, space, name):
    if key not in group or not isinstance(group[key], h5py.Dataset):
        fail(f"{name}: there is no array {key}")
    d = group[key]
    want = (rows, *shape_of(space))
    if d.shape != want and not (shape_of(space) == [] and d.shape == (rows, 1)):
        fail(f"{name}: {key} is {d.shape}, expected {want}" + ("; images in JPEG are not read" if d.dtype.kind == "O" or d.ndim == 2 and len(want) == 4 else ""))
    return np.ascontiguousarray(d[()], dtype=np.dtype(dtype_of(space)).newbyteorder("<"))


def told(key, meta, found):
    """Metadata that tell of other data than there are belong to another file, or to one that was not written to its end."""
    if key in meta and meta[key] != found:
        fail(f"metadata.json: {key} is {meta[key]}, and main_data.hdf5 has {found}")


def read(folder):
    out = sys.stdout.buffer
    folder = data_folder(folder)
    with open(os.path.join(folder, "metadata.json")) as f:
        meta = json.load(f)
    if meta.get("data_format", "hdf5") != "hdf5":
        fail(f"{folder}: its format is {meta['data_format']}, expected hdf5")
    spec = json.loads(meta.get("env_spec") or "{}")
    for key in ("observation_space", "action_space"):
        if key not in meta:
            fail(f"{folder}: metadata.json has no {key}")
    observation = json.loads(meta["observation_space"])
    plain = observation["type"] != "Dict"
    spaces = {FIELD: observation} if plain else observation["subspaces"]
    fields = [{"name": k, "space": described(k, s)} for k, s in spaces.items()]
    action = described("action", json.loads(meta["action_space"]))
    with h5py.File(os.path.join(folder, "main_data.hdf5"), "r") as file:
        n = sum(key.startswith("episode_") for key in file.keys())
        told("total_episodes", meta, n)
        head = {
            "observation": fields, "action": action, "episodes": n, "transitions": int(meta.get("total_steps", 0)), "environment": spec.get("id") or meta.get("dataset_id", ""),
            "max_steps": spec.get("max_episode_steps") or 0, "algorithm": meta.get("algorithm_name", ""), "policy": meta.get("dataset_id", ""), "config": meta.get("env_spec") or "",
        }
        head["masked"] = n > 0 and "infos" in file["episode_0"] and "action_mask" in file["episode_0"]["infos"]
        out.write(json.dumps(head).encode() + b"\n")
        steps = 0
        for i in range(n):
            name = f"episode_{i}"
            if name not in file:
                fail(f"{folder}: there is no {name} among {n} episodes")
            g = file[name]
            length = len(g["rewards"])
            if length == 0:
                fail(f"{name}: it has no step")
            infos = g.get("infos", {})
            line = {"length": length, "log_prob": "log_prob" in infos}
            parts = [array(g if plain else g["observations"], "observations" if plain else f["name"], length + 1, f["space"], name) for f in fields]
            parts.append(array(g, "actions", length, action, name))
            number = {"type": "box", "shape": [], "dtype": "float64"}
            flag = {"type": "box", "shape": [], "dtype": "uint8"}
            parts += [array(g, "rewards", length, number, name), array(g, "terminations", length, flag, name), array(g, "truncations", length, flag, name)]
            if line["log_prob"]:
                parts.append(array(infos, "log_prob", length + 1, number, name)[1:])
            if head["masked"]:
                mask = infos.get("action_mask")
                if mask is None or len(mask) != length + 1:
                    fail(f"{name}: infos/action_mask is missing, or has not {length + 1} rows")
                parts.append(np.ascontiguousarray(mask[()], dtype=np.uint8))
            out.write(json.dumps(line).encode() + b"\n")
            for p in parts:
                out.write(p.tobytes())
            steps += length
        told("total_steps", meta, steps)
    out.write(b'{"end": true}\n')
    out.flush()


def serialized(s):
    """A space of ours as Minari's metadata have it."""
    if s["type"] == "box":
        n = int(np.prod(s["shape"], dtype=np.int64))
        full = lambda v: np.asarray([float(x) for x in v] * (n if len(v) == 1 else 1)).reshape(s["shape"]).tolist()
        return {"type": "Box", "dtype": s["dtype"], "shape": s["shape"], "low": full(s["low"]), "high": full(s["high"])}
    if s["type"] == "discrete":
        return {"type": "Discrete", "dtype": "int64", "start": s.get("start", [0])[0], "n": s["n"][0]}
    if s["type"] == "multi_discrete":
        return {"type": "MultiDiscrete", "dtype": "int64", "nvec": s["n"], "start": s.get("start", [0] * len(s["n"]))}
    return {"type": "MultiBinary", "n": s["n"][0]}


def write(folder):
    source = sys.stdin.buffer
    head = json.loads(source.readline())
    fields, action = head["observation"], head["action"]
    plain = len(fields) == 1 and fields[0]["name"] == FIELD
    data = os.path.join(folder, "data")
    os.makedirs(data)

    def take(rows, space):
        dtype = np.dtype(dtype_of(space)).newbyteorder("<")
        shape = (rows, *shape_of(space))
        size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        b = source.read(size)
        if len(b) != size:
            fail("the stream ends within an episode")
        return np.frombuffer(b, dtype=dtype).reshape(shape)

    episodes, steps = 0, 0
    number = {"type": "box", "shape": [], "dtype": "float64"}
    flag = {"type": "box", "shape": [], "dtype": "uint8"}
    with h5py.File(os.path.join(data, "main_data.hdf5"), "w", track_order=True) as file:
        while True:
            text = source.readline()
            if not text:
                fail("the stream ends without its end")
            line = json.loads(text)
            if line.get("end"):
                break
            n = line["length"]
            g = file.create_group(f"episode_{episodes}")
            g.attrs["id"], g.attrs["total_steps"] = episodes, n

            def put(group, key, a):
                group.create_dataset(key, data=a, chunks=True, maxshape=(None, *a.shape[1:]))

            for f in fields:
                group, key = (g, "observations") if plain else (g.require_group("observations"), f["name"])
                put(group, key, take(n + 1, f["space"]))
            put(g, "actions", take(n, action))
            put(g, "rewards", take(n, number))
            put(g, "terminations", take(n, flag).astype(bool))
            put(g, "truncations", take(n, flag).astype(bool))
            if line["log_prob"]:
                put(g.require_group("infos"), "log_prob", np.concatenate([[np.nan], take(n, number)]))
            if head["mask"]:
                put(g.require_group("infos"), "action_mask", take(n + 1, {"type": "box", "shape": [head["mask"]], "dtype": "uint8"}))
            episodes, steps = episodes + 1, steps + n
    observation = serialized(fields[0]["space"]) if plain else {"type": "Dict", "subspaces": {f["name"]: serialized(f["space"]) for f in fields}}
    meta = {
        "dataset_id": head["id"], "data_format": "hdf5", "total_episodes": episodes, "total_steps": steps, "observation_space": json.dumps(observation), "action_space": json.dumps(serialized(action)),
        "algorithm_name": head["algorithm"], "author": [], "author_email": [], "code_permalink": "", "minari_version": "0.5.4", "dataset_size": round(os.path.getsize(os.path.join(data, "main_data.hdf5")) / 1e6, 1), "jpeg_encoding": False,
    }
    with open(os.path.join(data, "metadata.json"), "w") as f:
        json.dump(meta, f)


if len(sys.argv) != 3 or sys.argv[1] not in ("read", "write"):
    sys.exit(__doc__)
{"read": read, "write": write}[sys.argv[1]](sys.argv[2])
