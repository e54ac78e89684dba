"""Makes the models of cmd/app/testdata/foreign: the same small regression, learnt by programs other
than PyTorch and written by their own ONNX exporters.

    python cmd/peers/foreign_models.py FOLDER [MODEL…]

It needs numpy and onnx, and of the models that are named (all, without a name) jax and jax2onnx;
scikit-learn and skl2onnx; lightgbm and onnxmltools; keras, tensorflow and tf2onnx, which want other
versions than the rest: run it once for them, and then for keras_mlp in their environment. The rows
that are learnt are y = sin(2 x0) + x1 x2, drawn with a fixed seed; 64 others are written to
rows.csv with what each model gives for them, by onnx's reference evaluator.
"""

import sys
from pathlib import Path

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator


def rows(n, seed):
    x = np.random.default_rng(seed).uniform(-1, 1, (n, 3)).astype(np.float32)
    return x, (np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2]).astype(np.float32)


def jax_mlp(x, y):
    import jax
    import jax.numpy as jnp
    from jax2onnx import to_onnx

    keys = jax.random.split(jax.random.PRNGKey(0), 2)
    params = [jax.random.normal(keys[0], (3, 16)) * 0.6, jnp.zeros(16), jax.random.normal(keys[1], (16, 1)) * 0.25, jnp.zeros(1)]

    def apply(p, x):
        return jnp.tanh(x @ p[0] + p[1]) @ p[2] + p[3]

    @jax.jit
    def step(p):
        grads = jax.grad(lambda p: jnp.mean((apply(p, x)[:, 0] - y) ** 2))(p)
        return [a - 0.1 * g for a, g in zip(p, grads)]

    for _ in range(200):
        params = step(params)
    return to_onnx(lambda x: apply(params, x), inputs=[("B", 3)], model_name="jax_mlp")


def sklearn_mlp(x, y):
    from skl2onnx import to_onnx
    from sklearn.neural_network import MLPRegressor

    m = MLPRegressor(hidden_layer_sizes=(16,), activation="tanh", max_iter=200, random_state=0).fit(x, y)
    return to_onnx(m, x[:1], target_opset=17)


def lightgbm_trees(x, y):
    import lightgbm
    from onnxmltools.convert import convert_lightgbm
    from onnxmltools.convert.common.data_types import FloatTensorType

    m = lightgbm.LGBMRegressor(n_estimators=10, num_leaves=8, random_state=0, verbose=-1, deterministic=True, num_threads=1).fit(x, y)
    return convert_lightgbm(m, initial_types=[("input", FloatTensorType([None, 3]))], target_opset=15)


def keras_mlp(x, y):
    import tempfile

    import keras

    keras.utils.set_random_seed(0)
    m = keras.Sequential([keras.Input((3,)), keras.layers.Dense(16, "tanh"), keras.layers.Dense(1)])
    m.compile(keras.optimizers.Adam(0.01), "mse")
    m.fit(x, y, batch_size=64, epochs=20, verbose=0)
    with tempfile.TemporaryDirectory() as folder:
        m.export(folder + "/m.onnx", format="onnx", verbose=False)
        return onnx.load(folder + "/m.onnx")


def main():
    makers = [jax_mlp, sklearn_mlp, lightgbm_trees, keras_mlp]
    folder, wanted = Path(sys.argv[1]), sys.argv[2:] or [f.__name__ for f in makers]
    folder.mkdir(parents=True, exist_ok=True)
    x, y = rows(2000, 1)
    fresh, target = rows(64, 2)
    columns, values = ["x0", "x1", "x2", "y"], [fresh, target[:, None]]
    for make in makers:
        name = make.__name__
        path = folder / f"{name}.onnx"
        if name in wanted:
            onnx.save(make(x, y), path)
        m = onnx.load(path)
        onnx.checker.check_model(m)
        out = ReferenceEvaluator(m).run(None, {m.graph.input[0].name: fresh})[0].reshape(64, 1)
        columns.append(name)
        values.append(out)
        used = sorted({(n.domain or "ai.onnx") + "." + n.op_type for n in m.graph.node})
        print(name, len(m.SerializeToString()), "bytes", {o.domain or "ai.onnx": o.version for o in m.opset_import}, used,
              "rmse", float(np.sqrt(np.mean((out[:, 0] - target) ** 2))))
    np.savetxt(folder / "rows.csv", np.hstack(values), fmt="%.9g", delimiter=",", header=",".join(columns), comments="")


main()
