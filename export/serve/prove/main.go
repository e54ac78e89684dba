package prove

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Main is the other process: it reads a model from in, compiles it, runs it on zeros and on ones in
// batches of all sizes that it was told, and on the rows that [engine.CheckRows] draws, and reports on out what it is doing. An engine that
// refuses the model or a run is no error; the error is about in and out alone.
func Main(ctx context.Context, c engine.Compiler, in io.Reader, out io.Writer) error {
	say := json.NewEncoder(out)
	h, m, err := decode(in)
	if err != nil {
		return fmt.Errorf("try a model: %w", err)
	}
	if err := say.Encode(report{Stage: "compiling"}); err != nil {
		return err
	}
	s, err := c.Compile(m, h.Options)
	if err != nil {
		return say.Encode(report{Stage: "compiling", Done: true})
	}
	defer s.Close()
	began := time.Now()
	for _, n := range h.Rows {
		if size(s.Inputs(), n) > maxInputs {
			break
		}
		for _, what := range []string{"zeros", "ones"} {
			// The first run has its time; whoever waits for the version has none for many long
			// ones.
			if time.Since(began) > maxRunning {
				break
			}
			if err := say.Encode(report{Stage: fmt.Sprintf("running %d rows of %s", n, what)}); err != nil {
				return err
			}
			// An error of the run is no crash.
			_ = s.Run(ctx, make([]*tensor.Tensor, len(s.Outputs())), inputs(s.Inputs(), n, what == "ones"))
		}
	}
	if time.Since(began) <= maxRunning {
		if err := say.Encode(report{Stage: "running random rows"}); err != nil {
			return err
		}
		_ = engine.CheckRows(ctx, s, nil, c, m, h.Options) // what it says is the server's to ask
	}
	if err := say.Encode(report{Stage: "closing"}); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	return say.Encode(report{Stage: "closing", Done: true})
}

const (
	// maxInputs is the most bytes of a batch that is tried.
	maxInputs = 256 << 20
	// maxRunning is the time after which no further run begins.
	maxRunning = 3 * time.Second
)

// size is how many bytes the inputs of a batch take.
func size(ports []engine.Port, rows int) int {
	total := 0
	for _, p := range ports {
		n := max(p.DType.Size(), 1)
		for a, d := range p.Shape {
			switch {
			case d < 0 && a == 0:
				n *= rows
			case d >= 0:
				n *= min(d, maxInputs+1)
			}
			n = min(n, maxInputs+1)
		}
		total += n
	}
	return total
}

// inputs makes a batch: the first extent is the number of rows where it is free, every other free
// one is 1.
func inputs(ports []engine.Port, rows int, ones bool) []*tensor.Tensor {
	list := make([]*tensor.Tensor, len(ports))
	for i, p := range ports {
		shape := make([]int, len(p.Shape))
		for a, d := range p.Shape {
			shape[a] = d
			if d < 0 {
				shape[a] = 1
				if a == 0 {
					shape[a] = rows
				}
			}
		}
		list[i] = tensor.New(p.DType, shape...)
		if ones {
			setOnes(list[i])
		}
	}
	return list
}

// setOnes writes ones; text stays empty.
func setOnes(t *tensor.Tensor) {
	var one []byte
	switch d := t.DType(); d {
	case tensor.Float32:
		one = tensor.Scalar(float32(1)).Bytes()
	case tensor.Float64:
		one = tensor.Scalar(float64(1)).Bytes()
	case tensor.Float16:
		one = []byte{0x00, 0x3c}
	case tensor.BFloat16:
		one = []byte{0x80, 0x3f}
	default:
		if d == tensor.String || d.Size() == 0 {
			return
		}
		one = make([]byte, d.Size())
		one[0] = 1
	}
	for b := t.Bytes(); len(b) >= len(one); b = b[len(one):] {
		copy(b, one)
	}
}
