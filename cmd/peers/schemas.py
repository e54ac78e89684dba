"""Writes runtime/onnx/schema/{schemas,bodies}.txt.gz from the operator definitions of the onnx Python package.

    python cmd/peers/schemas.py runtime/onnx/schema

Run it with the onnx release whose operators the table should know; the release is recorded in the first line. Equal releases give equal bytes.

schemas.txt: line 1 is JSON {"onnx": release, "types": [[type strings] ...]}; every other line is "domain TAB name TAB since TAB JSON" for one version of
one operator, where JSON is a list: [flags, [min_in, max_in, min_out, max_out], inputs, outputs, {type parameter: index into types}, attributes,
[body opsets]]. flags: 1 deprecated, 2 not deterministic, 4 has a body that depends on its node's types, 8 experimental. A parameter is
[name, type, option (0 single, 1 optional, 2 variadic), heterogeneous, min_arity, differentiable (0 unknown, 1 yes, 2 no)]. An attribute is
[name, type, required, default or null].

bodies.txt: "domain TAB name TAB since TAB opset TAB base64 of a FunctionProto" for every body that depends on nothing.
"""
import base64
import gzip
import json
import sys

import onnx
from onnx import defs

UNBOUNDED = 2147483647


def attribute(a):
    default = None
    if a.default_value.name:
        v = onnx.helper.get_attribute_value(a.default_value)
        if isinstance(v, bytes):
            v = v.decode()
        elif isinstance(v, (list, tuple)) or hasattr(v, "extend"):
            v = [x.decode() if isinstance(x, bytes) else x for x in v]
        if isinstance(v, (int, str, list)):
            default = v
        elif isinstance(v, float):
            # The shortest decimal that gives the same float32: what the specification's text shows.
            default = next(x for x in (float(f"{v:.{p}g}") for p in range(1, 18)) if onnx.numpy_helper.np.float32(x) == onnx.numpy_helper.np.float32(v))
    return [a.name, a.type.name, int(a.required), default]


def main(out):
    types, index = [], {}

    def type_set(strs):
        key = tuple(sorted(strs))
        if key not in index:
            index[key] = len(types)
            types.append(list(key))
        return index[key]

    lines, bodies = [], []
    schemas = sorted(defs.get_all_schemas_with_history(), key=lambda s: (s.domain, s.name, s.since_version))
    for s in schemas:
        constraints = {t.type_param_str: type_set(t.allowed_type_strs) for t in s.type_constraints}

        def param(p):
            if p.type_str not in constraints:
                constraints[p.type_str] = type_set(p.types)
            diff = {"Unknown": 0, "Differentiable": 1, "NonDifferentiable": 2}[p.differentiation_category.name]
            option = {"Single": 0, "Optional": 1, "Variadic": 2}[p.option.name]
            return [p.name, p.type_str, option, int(not p.is_homogeneous), p.min_arity, diff]

        flags = int(s.deprecated) | 2 * (s.node_determinism.name == "NonDeterministic") | 4 * s.has_context_dependent_function
        flags |= 8 * (s.support_level.name == "EXPERIMENTAL")
        versions = sorted(s.function_opset_versions) if s.has_function else []
        record = [
            int(flags),
            [-1 if v == UNBOUNDED else v for v in (s.min_input, s.max_input, s.min_output, s.max_output)],
            [param(p) for p in s.inputs],
            [param(p) for p in s.outputs],
            constraints,
            [attribute(a) for _, a in sorted(s.attributes.items())],
            versions,
        ]
        lines.append("\t".join([s.domain, s.name, str(s.since_version), json.dumps(record, separators=(",", ":"))]))
        for v in versions:
            f = onnx.FunctionProto()
            f.ParseFromString(s.get_function_with_opset_version(v))
            f.ClearField("doc_string")
            bodies.append("\t".join([s.domain, s.name, str(s.since_version), str(v), base64.b64encode(f.SerializeToString(deterministic=True)).decode()]))

    head = json.dumps({"onnx": onnx.__version__, "types": types}, separators=(",", ":"))
    for name, rows in (("schemas", [head] + lines), ("bodies", bodies)):
        with open(f"{out}/{name}.txt.gz", "wb") as f:
            f.write(gzip.compress(("\n".join(rows) + "\n").encode(), 9, mtime=0))
    print(f"onnx {onnx.__version__}: {len(lines)} operator versions, {len(bodies)} bodies")


if __name__ == "__main__":
    main(sys.argv[1])
