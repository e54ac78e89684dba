"""Writes the node cases of the installed onnx as the ONNX repository lays them out.

    python nodecases.py OUT.tar.gz

OUT.tar.gz has test_<name>/model.onnx, and input_<i>.pb and output_<i>.pb in
test_<name>/test_data_set_<k>, which runtime/internal/nodecases reads.
"""

import io
import sys
import tarfile
import warnings

from onnx import TensorProto, numpy_helper


def encode(value, info):
    """The protobuf of an input or output, of the kind that the graph declares."""
    if isinstance(value, TensorProto):
        return value
    kind = info.type.WhichOneof("value")
    make = {
        "tensor_type": numpy_helper.from_array,
        "sequence_type": numpy_helper.from_list,
        "optional_type": numpy_helper.from_optional,
        "map_type": numpy_helper.from_dict,
    }[kind]
    if kind == "tensor_type":
        import numpy

        value = numpy.asarray(value)
    return make(value, info.name)


def main(out):
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases

    cases = sorted(collect_testcases(None), key=lambda c: c.name)
    if len({c.name for c in cases}) != len(cases):
        raise SystemExit("two cases have one name")
    with tarfile.open(out, "w:gz") as archive:

        def add(name, message):
            content = message.SerializeToString(deterministic=True)
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))

        for case in cases:
            add(f"{case.name}/model.onnx", case.model)
            graph = case.model.graph
            for k, (inputs, outputs) in enumerate(case.data_sets):
                for word, values, infos in (("input", inputs, graph.input), ("output", outputs, graph.output)):
                    for i, (value, info) in enumerate(zip(values, infos, strict=True)):
                        add(f"{case.name}/test_data_set_{k}/{word}_{i}.pb", encode(value, info))
    print(f"{len(cases)} node cases", file=sys.stderr)


main(sys.argv[1])
