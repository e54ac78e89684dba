package oip

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// numbers are what policies get and give: normally distributed float32.
func numbers(n int) []float32 {
	r := rand.New(rand.NewPCG(7, 8))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

type jsonTensor struct {
	Name     string    `json:"name"`
	Datatype string    `json:"datatype"`
	Shape    []int     `json:"shape"`
	Data     []float32 `json:"data"`
}

type jsonRequest struct {
	Inputs  []jsonTensor `json:"inputs,omitempty"`
	Outputs []jsonTensor `json:"outputs,omitempty"`
}

// BenchmarkParse reads a request of 10,000 floats; "float32" as this package writes them, "float64"
// as Python prints float32 that were widened.
func BenchmarkParse(b *testing.B) {
	v := numbers(10000)
	short, _, err := AppendRequest(nil, &serve.Request{Inputs: []serve.Tensor{{Name: "x", Value: tensor.Of(v, 100, 100)}}}, Options{})
	if err != nil {
		b.Fatal(err)
	}
	long := []byte(`{"inputs":[{"name":"x","datatype":"FP32","shape":[100,100],"data":[`)
	for i, f := range v {
		if i > 0 {
			long = append(long, ", "...)
		}
		long = strconv.AppendFloat(long, float64(f), 'g', -1, 64)
	}
	long = append(long, "]}]}"...)
	for _, c := range []struct {
		name string
		body []byte
	}{{"float32", short}, {"float64", long}} {
		b.Run(c.name+"/oip", func(b *testing.B) {
			var r Request
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Decode(c.body, -1); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/encoding-json", func(b *testing.B) {
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				var r jsonRequest
				if err := json.Unmarshal(c.body, &r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWrite writes an answer of 10,000 floats.
func BenchmarkWrite(b *testing.B) {
	v := numbers(10000)
	resp := serve.Response{Model: "m", Outputs: []serve.Tensor{{Name: "y", Value: tensor.Of(v, 100, 100)}}}
	b.Run("oip", func(b *testing.B) {
		var r Request
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			var err error
			if buf, _, err = r.AppendResponse(buf[:0], &resp); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := json.Marshal(jsonRequest{Outputs: []jsonTensor{{"y", "FP32", []int{100, 100}, v}}}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkBinary reads a request and writes its answer in the binary form, at the size of one
// observation and of a large batch.
func BenchmarkBinary(b *testing.B) {
	for _, rows := range []int{1, 1024} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			x := tensor.Of(numbers(rows*17), rows, 17)
			body, jsonLen, err := AppendRequest(nil, &serve.Request{Inputs: []serve.Tensor{{Name: "obs", Value: x}}}, Options{Binary: true, BinaryOutput: true})
			if err != nil {
				b.Fatal(err)
			}
			var r Request
			var buf []byte
			b.ReportAllocs()
			for b.Loop() {
				if err := r.Decode(body, jsonLen); err != nil {
					b.Fatal(err)
				}
				if buf, _, err = r.AppendResponse(buf[:0], &serve.Response{Model: "m", Version: "1", Outputs: r.Inputs}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
