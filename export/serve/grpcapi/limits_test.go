package grpcapi

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestMessagesAreBounded: what a message holds more, or longer, of than a request may have is
// refused before anything is made of it, and is not sent back.
func TestMessagesAreBounded(t *testing.T) {
	type input = inference.ModelInferRequest_InferInputTensor
	type output = inference.ModelInferRequest_InferRequestedOutputTensor
	long := strings.Repeat("x", serve.MaxName+1)
	for what, m := range sorted.All(map[string]*inference.ModelInferRequest{
		"the request's id":      {Id: long},
		"the model's name":      {ModelName: long},
		"the version's name":    {ModelVersion: long},
		"the sequence's id":     {Parameters: map[string]*inference.InferParameter{"sequence_id": {ParameterChoice: &inference.InferParameter_StringParam{StringParam: long}}}},
		"the name of an input":  {Inputs: []*input{{Name: long}}},
		"the name of an output": {Outputs: []*output{{Name: long}}},
		"inputs":                {Inputs: make([]*input, serve.MaxPorts+1)},
		"outputs":               {Outputs: make([]*output, serve.MaxPorts+1)},
		"extents":               {Inputs: []*input{{Name: "x", Shape: make([]int64, serve.MaxRank+1)}}},
		"strings":               {Inputs: []*input{{Name: "x", Datatype: "BYTES", Shape: []int64{serve.MaxStrings + 1}, Contents: &inference.InferTensorContents{BytesContents: make([][]byte, serve.MaxStrings+1)}}}},
	}) {
		if m.ModelName == "" {
			m.ModelName = "m"
		}
		_, _, err := decode(m)
		if serve.CodeOf(err) != serve.InvalidArgument || !strings.Contains(err.Error(), what) || len(err.Error()) > 200 {
			t.Errorf("%s: %.300v", what, err)
		}
	}
}
