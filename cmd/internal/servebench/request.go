package servebench

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// observations are the rows that requests send: standard normal, from a fixed seed.
func observations(rows, width int) []float32 {
	x := make([]float32, rows*width)
	rng.New(3).Split("observations").Stream().FillNormal32(x, 0, 1)
	return x
}

// port is an input as the protocol's metadata describes it, and as a request carries it.
type port struct {
	Name       string         `json:"name"`
	Shape      []int          `json:"shape"`
	Datatype   string         `json:"datatype"`
	Parameters map[string]any `json:"parameters,omitempty"`
	Data       any            `json:"data,omitempty"`
	// raw is the data as the binary extension has it.
	raw []byte
}

// filled gives a port values of its type: free extents become rows, floats are standard normal,
// truth values and masks are true, integers 0.
func (p port) filled(rows int) (port, error) {
	n := 1
	shape := make([]int, len(p.Shape))
	for i, d := range p.Shape {
		if d < 0 {
			d = rows
		}
		shape[i] = d
		if n *= d; n > 1<<24 {
			return p, fmt.Errorf("input %q of shape %v is too large to make up", p.Name, p.Shape)
		}
	}
	p.Shape, p.Parameters = shape, nil
	x := observations(1, n)
	if strings.Contains(p.Name, "mask") {
		for i := range x {
			x[i] = 1
		}
	}
	switch p.Datatype {
	case "FP32":
		p.Data = x
		for _, v := range x {
			p.raw = binary.LittleEndian.AppendUint32(p.raw, math.Float32bits(v))
		}
	case "FP64":
		p.Data = x
		for _, v := range x {
			p.raw = binary.LittleEndian.AppendUint64(p.raw, math.Float64bits(float64(v)))
		}
	case "BOOL":
		list := make([]bool, n)
		for i := range list {
			list[i] = true
			p.raw = append(p.raw, 1)
		}
		p.Data = list
	case "INT32", "INT64":
		p.Data = make([]int, n)
		p.raw = make([]byte, n*map[string]int{"INT32": 4, "INT64": 8}[p.Datatype])
	default:
		return p, fmt.Errorf("input %q is %s, which the load generator does not make up", p.Name, p.Datatype)
	}
	return p, nil
}

// floats is the input "x" with these values.
func floats(rows, width int) port {
	p, err := port{Name: "x", Shape: []int{-1, width}, Datatype: "FP32"}.filled(rows)
	if err != nil {
		panic(err) // the networks of this package are small
	}
	return p
}

// jsonBody is an inference request in JSON.
func jsonBody(inputs []port) ([]byte, error) {
	return json.Marshal(map[string]any{"inputs": inputs})
}

const jsonHeader = "Content-Type: application/json\r\n"

// binaryBody is an inference request with the binary tensor extension, and the header lines that
// say how long its JSON is.
func binaryBody(inputs []port) (header string, body []byte, err error) {
	list := make([]port, len(inputs))
	var raw []byte
	for i, p := range inputs {
		raw = append(raw, p.raw...)
		p.Parameters, p.Data = map[string]any{"binary_data_size": len(p.raw)}, nil
		list[i] = p
	}
	head, err := json.Marshal(map[string]any{"inputs": list, "parameters": map[string]any{"binary_data_output": true}})
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("Inference-Header-Content-Length: %d\r\nContent-Type: application/octet-stream\r\n", len(head)), append(head, raw...), nil
}
