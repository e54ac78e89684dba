"""Writes runtime/internal/nodecases/testdata/own.tar.gz: single-operator models of our own, random inputs, and ONNX Runtime's outputs.

    python cmd/peers/cases.py runtime/internal/nodecases/testdata/own.tar.gz

It needs numpy, onnx and onnxruntime. The layout is that of ONNX's node cases. Equal versions write equal bytes.
"""

import gzip
import io
import sys
import tarfile

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(20)
cases = {}

F16, F32, F64 = np.float16, np.float32, np.float64
INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def f(*shape, dtype=F32, low=-2.0, high=2.0):
    return rng.uniform(low, high, shape).astype(dtype)


def i(*shape, dtype=np.int64, low=0, high=10):
    return rng.integers(low, high, shape).astype(dtype)


def ints(*v):
    return np.array(v, dtype=np.int64)


def scalar(v, dtype=F32):
    return np.array(v, dtype=dtype)


def case(name, op, inputs, outputs=1, opset=18, domain="", weights=(), **attrs):
    """inputs are arrays, None for an absent one; weights are the positions of those that become initializers."""
    names, values, feeds, infos, inits = [], [], {}, [], []
    for k, x in enumerate(inputs):
        if x is None:
            names.append("")
            continue
        n = "x%d" % k
        names.append(n)
        if k in weights:
            inits.append(numpy_helper.from_array(x, n))
            continue
        feeds[n] = x
        values.append(x)
        infos.append(helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape))
    outs = ["y%d" % k for k in range(outputs)]
    node = helper.make_node(op, names, outs, name=op, domain=domain, **attrs)
    imports = [helper.make_opsetid("", opset)]
    if domain:
        imports.append(helper.make_opsetid(domain, 1))
    blank = [onnx.ValueInfoProto(name=o) for o in outs]
    model = helper.make_model(helper.make_graph([node], name, infos, blank, inits), opset_imports=imports, ir_version=8, producer_name="onnxrl")
    model = onnx.shape_inference.infer_shapes(model)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    got = session.run(None, feeds)
    for o, y in zip(model.graph.output, got):
        o.CopyFrom(helper.make_tensor_value_info(o.name, helper.np_dtype_to_tensor_dtype(y.dtype), y.shape))
    assert name not in cases, name
    cases[name] = (model, values, got)


# Element-wise, over element types and broadcasting.
for t in (F32, F64):
    for op in ("Exp", "Tanh", "Sigmoid", "Sin", "Cos", "Neg", "Abs", "Sign", "Floor", "Ceil", "Reciprocal", "Round"):
        if op == "Cos" and t == F64:
            continue  # ONNX Runtime 1.27 has no kernel for it
        case("%s_%s" % (op.lower(), t.__name__), op, [f(3, 5, dtype=t)])
    case("log_%s" % t.__name__, "Log", [f(3, 5, dtype=t, low=0.1)])
    case("sqrt_%s" % t.__name__, "Sqrt", [f(3, 5, dtype=t, low=0.1)])
    case("pow_%s" % t.__name__, "Pow", [f(3, 5, dtype=t, low=0.1), f(5, dtype=t)])
    for op in ("Add", "Sub", "Mul", "Div"):
        case("%s_%s_outer" % (op.lower(), t.__name__), op, [f(4, 1, 3, dtype=t), f(2, 1, dtype=t, low=0.5)])
for t in (np.int32, np.int64):
    for op in ("Add", "Sub", "Mul", "Div"):
        case("%s_%s" % (op.lower(), t.__name__), op, [i(3, 4, dtype=t, low=-20, high=20), i(4, dtype=t, low=1)])
for t in INTS:
    case("mod_%s" % t.__name__, "Mod", [i(3, 4, dtype=t, low=0, high=50), i(4, dtype=t, low=1)])
    if t not in (np.int16, np.uint16):
        case("max_%s" % t.__name__, "Max", [i(3, 4, dtype=t), i(4, dtype=t)])
case("mod_negative", "Mod", [i(6, low=-9, high=9), i(6, low=1, high=5)])
case("mod_fmod", "Mod", [f(6), f(6, low=0.5)], fmod=1)
case("where_scalar", "Where", [i(3, 4, high=2).astype(bool), scalar(1), f(3, 4)])
case("pow_int_exponent", "Pow", [f(3, 4), i(4, dtype=np.int32, high=4)])
case("erf", "Erf", [f(7)])
for op in ("Elu", "Selu", "LeakyRelu", "Softplus", "Softsign", "HardSigmoid", "HardSwish", "Celu", "ThresholdedRelu", "Mish", "Relu"):
    case(op.lower(), op, [f(4, 4)])
case("gelu_tanh", "Gelu", [f(8)], opset=20, approximate="tanh")
case("prelu", "PRelu", [f(2, 3, 4), f(3, 1)])
for a in (F32, F64, np.int32, np.int64, np.uint8, np.bool_):
    for b in (F32, F64, np.int32, np.int64, np.uint8, np.bool_, F16):
        if a != b:
            case("cast_%s_%s" % (np.dtype(a).name, np.dtype(b).name), "Cast", [f(6, low=0, high=9).astype(a)], to=helper.np_dtype_to_tensor_dtype(np.dtype(b)))

# Matrix products.
for ta in (0, 1):
    for tb in (0, 1):
        x, y = f(*((9, 5) if ta else (5, 9))), f(*((7, 9) if tb else (9, 7)))
        case("gemm_%d%d" % (ta, tb), "Gemm", [x, y, f(7)], transA=ta, transB=tb, alpha=0.5, beta=2.0)
case("gemm_weights", "Gemm", [f(3, 8), f(8, 16), f(16)], weights=(1, 2))
case("gemm_column_bias", "Gemm", [f(3, 8), f(8, 4), f(3, 1)])
case("gemm_float64", "Gemm", [f(12, 8, dtype=F64), f(8, 4, dtype=F64)])
case("matmul_batch", "MatMul", [f(3, 1, 4, 5), f(2, 5, 6)])
case("matmul_vector", "MatMul", [f(5), f(3, 5, 6)])
case("matmul_large", "MatMul", [f(70, 40), f(40, 72)])
case("matmul_int32", "MatMul", [i(3, 4, dtype=np.int32), i(4, 5, dtype=np.int32)])
case("einsum_attention", "Einsum", [f(2, 3, 4, 5), f(2, 3, 6, 5)], equation="bhqd,bhkd->bhqk")
case("einsum_trace", "Einsum", [f(5, 5)], equation="ii->")
case("einsum_three", "Einsum", [f(2, 3), f(3, 4), f(4, 5)], equation="ab,bc,cd->ad")
case("einsum_ellipsis", "Einsum", [f(2, 3, 4), f(4, 5)], equation="...a,ab->...b")

# Movement.
case("transpose_5", "Transpose", [f(2, 3, 4, 2, 3)], perm=[3, 0, 4, 2, 1])
case("slice_negative_step", "Slice", [f(6, 5), ints(-1, 4), ints(-100, 0), ints(0, 1), ints(-2, -1)])
case("slice_past_end", "Slice", [f(6, 5), ints(2), ints(2**62), ints(0)])
case("pad_reflect", "Pad", [f(2, 4, 5), ints(0, 2, 1, 0, 1, 3)], mode="reflect")
case("pad_edge", "Pad", [f(2, 4), ints(1, 2, 0, 3)], mode="edge")
case("pad_wrap", "Pad", [f(2, 4), ints(1, 2, 0, 3)], mode="wrap", opset=19)
case("pad_cut", "Pad", [f(4, 6), ints(-1, 2, 1, -3)])
case("tile_3", "Tile", [f(2, 3, 2), ints(2, 1, 3)])
case("expand_rank", "Expand", [f(3, 1), ints(2, 1, 4)])
case("split_uneven", "Split", [f(7, 2)], outputs=3, num_outputs=3)
case("concat_int64", "Concat", [i(2, 3), i(2, 2)], axis=-1)
case("gather_axis1", "Gather", [f(3, 5, 2), np.array([[0, -1], [2, 2]])], axis=1)
case("gather_elements", "GatherElements", [f(3, 4), i(2, 4, high=3)], axis=0)
case("gather_nd_batch", "GatherND", [f(2, 3, 4), i(2, 2, 1, high=3)], batch_dims=1)
for r in ("add", "mul", "max", "min"):
    case("scatter_nd_%s" % r, "ScatterND", [f(5, 3), np.array([[1], [3], [1]]), f(3, 3)], reduction=r)
    case("scatter_elements_%s" % r, "ScatterElements", [f(4, 3), i(3, 3, high=4), f(3, 3)], axis=0, reduction=r)
case("trilu_low", "Trilu", [f(2, 4, 5), scalar(1, np.int64)], upper=0)
case("onehot_axis0", "OneHot", [i(5, low=-4, high=4), scalar(4, np.int64), f(2)], axis=0)
case("cumsum_reverse", "CumSum", [f(3, 4), scalar(1, np.int64)], exclusive=1, reverse=1)
case("topk_smallest", "TopK", [f(3, 7), ints(3)], outputs=2, largest=0)
case("topk_axis0_int", "TopK", [i(6, 3, high=4), ints(2)], outputs=2, axis=0)
case("unique_rows", "Unique", [i(6, 2, high=2)], outputs=4, axis=0)
case("depth_to_space_crd", "DepthToSpace", [f(1, 8, 2, 3)], blocksize=2, mode="CRD")
case("reverse_sequence", "ReverseSequence", [f(4, 3, 2), ints(1, 4, 2)])

# Reductions.
for op in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare"):
    case("%s_middle" % op.lower(), op, [f(3, 4, 5), ints(1)], keepdims=0)
    case("%s_ends" % op.lower(), op, [f(3, 4, 5), ints(0, -1)])
case("reducesum_int64", "ReduceSum", [i(3, 4), ints(0)])
case("reducemean_float64_all", "ReduceMean", [f(3, 4, dtype=F64)])
case("argmax_last", "ArgMax", [i(4, 6, high=3).astype(F32)], axis=1, select_last_index=1)
case("softmax_axis1", "Softmax", [f(2, 5, 3)], axis=1)
case("softmax_old", "Softmax", [f(2, 5, 3)], axis=1, opset=11)
case("logsoftmax_float64", "LogSoftmax", [f(4, 5, dtype=F64)])

# Convolutions and pools.
for name, x, w, a in (
    ("1d_stride_dilation", f(2, 4, 17), f(6, 4, 3), dict(strides=[2], dilations=[2], pads=[3, 1])),
    ("1d_groups", f(2, 6, 9), f(8, 3, 3), dict(group=2)),
    ("1d_depthwise", f(1, 5, 9), f(5, 1, 3), dict(group=5, pads=[1, 1])),
    ("2d_same_upper", f(1, 3, 7, 8), f(4, 3, 3, 4), dict(auto_pad="SAME_UPPER", strides=[2, 3])),
    ("2d_same_lower", f(1, 3, 7, 8), f(4, 3, 3, 4), dict(auto_pad="SAME_LOWER", strides=[2, 1])),
    ("2d_uneven_pads", f(2, 3, 6, 5), f(4, 3, 3, 2), dict(pads=[0, 1, 2, 0])),
    ("3d", f(1, 2, 5, 4, 6), f(3, 2, 2, 3, 2), dict(pads=[1, 0, 1, 0, 1, 0], strides=[1, 2, 1])),
    ("1x1", f(2, 8, 4, 4), f(16, 8, 1, 1), {}),
):
    case("conv_%s" % name, "Conv", [x, w, f(w.shape[0])], **a)
for name, x, w, a in (
    ("1d", f(2, 4, 7), f(4, 3, 3), dict(strides=[2], output_padding=[1], pads=[1, 1])),
    ("2d_groups", f(1, 4, 5, 4), f(4, 2, 3, 2), dict(group=2, strides=[2, 1], dilations=[1, 2])),
    ("2d_output_shape", f(1, 2, 3, 3), f(2, 2, 3, 3), dict(strides=[3, 2], output_shape=[10, 8])),
    ("3d", f(1, 2, 3, 3, 2), f(2, 2, 2, 2, 2), dict(strides=[2, 1, 2])),
):
    case("convtranspose_%s" % name, "ConvTranspose", [x, w], **a)
case("maxpool_indices", "MaxPool", [f(2, 3, 7, 8)], outputs=2, kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])
case("maxpool_dilated_ceil", "MaxPool", [f(1, 2, 9, 10)], kernel_shape=[2, 3], dilations=[2, 2], strides=[2, 2], ceil_mode=1)
case("averagepool_1d_padded", "AveragePool", [f(2, 3, 9)], kernel_shape=[4], strides=[2], pads=[2, 1], count_include_pad=1)
case("averagepool_3d", "AveragePool", [f(1, 2, 5, 4, 6)], kernel_shape=[2, 2, 3], strides=[2, 1, 1])
case("averagepool_same", "AveragePool", [f(1, 2, 5, 6)], kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER")
case("lppool", "LpPool", [f(1, 2, 6, 6)], kernel_shape=[3, 2], strides=[2, 2], p=3)
case("globalmaxpool_1d", "GlobalMaxPool", [f(2, 3, 9)])

# Normalisation, recurrent layers, resizing.
case("batchnorm", "BatchNormalization", [f(2, 3, 4), f(3), f(3), f(3), f(3, low=0.5)])
case("batchnorm_train", "BatchNormalization", [f(4, 3, 5), f(3), f(3), f(3), f(3, low=0.5)], outputs=3, training_mode=1, momentum=0.7)
case("layernorm_stats", "LayerNormalization", [f(2, 3, 4), f(4), f(4)], outputs=3)
case("layernorm_axis1", "LayerNormalization", [f(2, 3, 4), f(3, 4)], axis=1)
case("instancenorm", "InstanceNormalization", [f(2, 3, 4, 2), f(3), f(3)])
case("lrn", "LRN", [f(2, 7, 3, 3)], size=3, alpha=0.3, beta=0.6, bias=1.5)
T, B, I, H = 5, 3, 4, 6
for d in ("forward", "reverse", "bidirectional"):
    n = 2 if d == "bidirectional" else 1
    lens = np.array([5, 2, 4], dtype=np.int32)
    case("lstm_%s" % d, "LSTM", [f(T, B, I), f(n, 4 * H, I), f(n, 4 * H, H), f(n, 8 * H), lens, f(n, B, H), f(n, B, H), f(n, 3 * H)],
         outputs=3, hidden_size=H, direction=d)
    case("gru_%s" % d, "GRU", [f(T, B, I), f(n, 3 * H, I), f(n, 3 * H, H), f(n, 6 * H), lens, f(n, B, H)], outputs=2, hidden_size=H, direction=d)
    case("rnn_%s" % d, "RNN", [f(T, B, I), f(n, H, I), f(n, H, H), f(n, 2 * H), lens, f(n, B, H)], outputs=2, hidden_size=H, direction=d)
case("gru_linear_before_reset", "GRU", [f(T, B, I), f(1, 3 * H, I), f(1, 3 * H, H), f(1, 6 * H)], outputs=2, hidden_size=H, linear_before_reset=1)
case("lstm_clip", "LSTM", [f(T, B, I), f(1, 4 * H, I), f(1, 4 * H, H)], outputs=3, hidden_size=H, clip=0.8)
case("rnn_relu", "RNN", [f(T, B, I), f(1, H, I), f(1, H, H)], outputs=2, hidden_size=H, activations=["Relu"])
for mode in ("nearest", "linear", "cubic"):
    for coord in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
        case("resize_%s_%s" % (mode, coord), "Resize", [f(1, 2, 5, 4), None, None, ints(1, 2, 8, 7)], mode=mode, coordinate_transformation_mode=coord)
for mode in ("linear", "nearest", "cubic"):
    for padding in ("zeros", "border", "reflection"):
        case("gridsample_%s_%s" % (mode, padding), "GridSample", [f(1, 2, 5, 4), f(1, 3, 6, 2, low=-1.5, high=1.5)], opset=20, mode=mode, padding_mode=padding)
case("gridsample_3d", "GridSample", [f(1, 2, 4, 3, 5), f(1, 2, 3, 2, 3, low=-1, high=1)], opset=20, mode="linear", align_corners=1)
case("maxroipool", "MaxRoiPool", [f(2, 3, 8, 9), np.array([[0, 1, 1, 6, 5], [1, 0, 2, 8, 7]], dtype=F32)], pooled_shape=[2, 3])
case("dft_odd", "DFT", [f(2, 7, 1)], axis=1)
case("dft_onesided_length", "DFT", [f(2, 9, 1), scalar(8, np.int64)], axis=1, onesided=1)

# Losses and quantisation.
case("nll_weighted", "NegativeLogLikelihoodLoss", [f(3, 5, 2), i(3, 2, high=5), f(5, low=0.1)], ignore_index=2)
case("softmax_cross_entropy", "SoftmaxCrossEntropyLoss", [f(6, 5), i(6, high=5)], outputs=2, reduction="sum")
case("quantize_axis", "QuantizeLinear", [f(3, 4, high=9), f(4, low=0.01, high=0.1), i(4, dtype=np.uint8)], axis=1)
case("dequantize_int8", "DequantizeLinear", [i(3, 4, dtype=np.int8, low=-9), scalar(0.3), scalar(2, np.int8)])
case("dynamic_quantize", "DynamicQuantizeLinear", [f(5, 6)], outputs=3)
case("matmul_integer", "MatMulInteger", [i(3, 4, dtype=np.uint8), i(4, 5, dtype=np.int8), scalar(3, np.uint8), scalar(-1, np.int8)])
case("fused_matmul", "FusedMatMul", [f(3, 5), f(4, 5)], domain="com.microsoft", transB=1, alpha=0.25)


def add(archive, path, data):
    entry = tarfile.TarInfo(path)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))


with open(sys.argv[1], "wb") as out, gzip.GzipFile(filename="", fileobj=out, mode="wb", mtime=0, compresslevel=9) as z:
    with tarfile.open(fileobj=z, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, (model, inputs, outputs) in sorted(cases.items()):
            base = "own_%s/" % name
            add(archive, base + "model.onnx", model.SerializeToString(deterministic=True))
            for kind, arrays in (("input", inputs), ("output", outputs)):
                for k, x in enumerate(arrays):
                    add(archive, base + "test_data_set_0/%s_%d.pb" % (kind, k), numpy_helper.from_array(np.asarray(x)).SerializeToString(deterministic=True))
print("%d cases, onnx %s, ONNX Runtime %s" % (len(cases), onnx.__version__, ort.__version__))
