package replay

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestLogProbabilitiesAboveZero refuses rows of choices, from writers and from files, whose
// probability would exceed 1, and takes densities.
func TestLogProbabilitiesAboveZero(t *testing.T) {
	for _, c := range []struct {
		action tensor.DType
		p      float64
		taken  bool
	}{{tensor.Int64, 0.5, false}, {tensor.Bool, 0.5, false}, {tensor.Int64, -0.5, true}, {tensor.Int64, 1e-6, true}, {tensor.Float32, 0.5, true}, {tensor.Float32, math.Inf(1), false}} {
		s, err := NewShared(Layout{Obs: []Column{{"x", tensor.Float32, nil}}, Action: Column{"action", c.action, nil}, LogProb: true}, SharedConfig{Capacity: 100, ChunkRows: 16})
		if err != nil {
			t.Fatal(err)
		}
		b := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(c.p)))
		err = s.soundRow(filed{&s.logProb, "log_prob"}, b, true)
		if c.taken != (err == nil) || err != nil && !strings.Contains(err.Error(), "the log-probability is ") {
			t.Errorf("%v, %g: %v", c.action, c.p, err)
		}
		if err := s.soundRow(filed{&s.logProb, "log_prob"}, b, false); err != nil {
			t.Errorf("what is no transition: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
