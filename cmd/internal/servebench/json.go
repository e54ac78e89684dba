package servebench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/oip"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// jsonRows is the batch whose numbers are read and written: enough of them that the numbers are the
// work.
const jsonRows = 64

// callFunc makes a caller of a function.
type callFunc func() error

func (f callFunc) call() error  { return f() }
func (f callFunc) close() error { return nil }

func dialFunc(f func() error) dialer {
	return func(context.Context) (caller, error) { return callFunc(f), nil }
}

// stdRequest and stdResponse are what one writes for encoding/json.
type stdRequest struct {
	Inputs []struct {
		Name     string    `json:"name"`
		Shape    []int     `json:"shape"`
		Datatype string    `json:"datatype"`
		Data     []float32 `json:"data"`
	} `json:"inputs"`
}

type stdTensor struct {
	Name     string    `json:"name"`
	Datatype string    `json:"datatype"`
	Shape    []int     `json:"shape"`
	Data     []float32 `json:"data"`
}

type stdResponse struct {
	ModelName    string      `json:"model_name"`
	ModelVersion string      `json:"model_version"`
	Outputs      []stdTensor `json:"outputs"`
}

// json reads a request and writes an answer of the same numbers, by the codec of the server and by
// encoding/json.
func (l *lab) json(ctx context.Context, r *Report) error {
	const width = wideInputs
	in := floats(jsonRows, width)
	body, err := jsonBody([]port{in})
	if err != nil {
		return err
	}
	x := observations(1, jsonRows*width)
	var req oip.Request
	var out []byte
	resp := serve.Response{Model: wideName, Version: "1", Outputs: []serve.Tensor{{Name: "y", Value: tensor.Of(x, jsonRows, width)}}}
	ours := func() (err error) {
		if err = req.Decode(body, -1); err != nil {
			return err
		}
		out, _, err = req.AppendResponse(out[:0], &resp)
		return err
	}
	var got []float32
	theirs := func() error {
		var doc stdRequest
		if err := json.Unmarshal(body, &doc); err != nil {
			return err
		}
		got = doc.Inputs[0].Data
		_, err := json.Marshal(stdResponse{wideName, "1", []stdTensor{{"y", "FP32", []int{jsonRows, width}, x}}})
		return err
	}
	if err := errors.Join(ours(), theirs()); err != nil {
		return err
	}
	for i, v := range req.Inputs[0].Value.Float32s() {
		if math.Float32bits(v) != math.Float32bits(got[i]) {
			return fmt.Errorf("number %d is %v, and %v for encoding/json", i, v, got[i])
		}
	}
	a, doneA, err := l.sideOf(ctx, "codec", dialFunc(ours), 1)
	if err != nil {
		return err
	}
	b, doneB, err := l.sideOf(ctx, "encoding/json", dialFunc(theirs), 1)
	if err != nil {
		return errors.Join(err, doneA())
	}
	rows, err := l.contest(contest{a: a, doneA: doneA, b: b, doneB: doneB}, func(d *duel) []benchmark.Row {
		row := d.row("json/codec", fmt.Sprintf("read and write %d float32", jsonRows*width), "encoding/json", "documents/s", perSec, benchmark.Target{AtLeast: 3})
		row.Note = fmt.Sprintf("%.1f against %.1f allocations", *d.a.Allocs, *d.b.Allocs)
		return []benchmark.Row{row}
	})
	if err != nil {
		return err
	}
	r.add(rows...)
	return nil
}
