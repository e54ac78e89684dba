"""A model of MLServer that runs an ONNX file in ONNX Runtime: the peer of serve_mlserver.sh."""

import numpy
import onnxruntime
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse, MetadataTensor

DATATYPES = {"tensor(float)": "FP32", "tensor(double)": "FP64", "tensor(bool)": "BOOL", "tensor(int32)": "INT32", "tensor(int64)": "INT64"}
DTYPES = {"FP32": numpy.float32, "FP64": numpy.float64, "BOOL": numpy.bool_, "INT32": numpy.int32, "INT64": numpy.int64}


def ports(args):
    return [MetadataTensor(name=a.name, datatype=DATATYPES[a.type], shape=[d if isinstance(d, int) else -1 for d in a.shape]) for a in args]


class Model(MLModel):
    async def load(self) -> bool:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(self.settings.parameters.uri, options, providers=["CPUExecutionProvider"])
        self.inputs, self.outputs = ports(self.session.get_inputs()), ports(self.session.get_outputs())
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        feed = {i.name: numpy.asarray(NumpyCodec.decode_input(i), dtype=DTYPES[i.datatype]).reshape(i.shape) for i in payload.inputs}
        result = self.session.run(None, feed)
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output(o.name, v) for o, v in zip(self.outputs, result)])
