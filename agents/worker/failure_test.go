package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// TestFailures: what an error is, it still is on the other side.
func TestFailures(t *testing.T) {
	bad := math.Float32frombits(0x7fc00001)
	cases := []error{
		errors.New("plain"),
		fmt.Errorf("interval x: %w", &agents.DivergedError{Text: "the loss is NaN"}),
		fmt.Errorf("interval x: %w", &optim.NonFiniteError{What: "gradient", Param: "w", Index: 3, Value: float32(math.Inf(-1))}),
		&optim.NonFiniteError{What: "gradient", Param: "w", Index: 0, Value: bad},
		fmt.Errorf("%w: arrays", checkpoint.ErrCorrupt),
		fmt.Errorf("saved: %w", context.Canceled),
	}
	for _, want := range cases {
		text, err := json.Marshal(FailureOf(want))
		if err != nil {
			t.Fatal(err)
		}
		var f Failure
		if err := json.Unmarshal(text, &f); err != nil {
			t.Fatal(err)
		}
		got := f.Err()
		if got.Error() != want.Error() {
			t.Errorf("%q, expected %q", got, want)
		}
		var d, wantD *agents.DivergedError
		if errors.As(got, &d) != errors.As(want, &wantD) || !reflect.DeepEqual(d, wantD) {
			t.Errorf("%q: %+v, expected %+v", want, d, wantD)
		}
		var g, wantG *optim.NonFiniteError
		if errors.As(got, &g) != errors.As(want, &wantG) || g != nil && (g.Error() != wantG.Error() || math.Float32bits(g.Value) != math.Float32bits(wantG.Value)) {
			t.Errorf("%q: %+v, expected %+v", want, g, wantG)
		}
		for _, is := range []error{checkpoint.ErrCorrupt, context.Canceled} {
			if errors.Is(got, is) != errors.Is(want, is) {
				t.Errorf("%q: is %v: %t", want, is, errors.Is(got, is))
			}
		}
	}
	if f := FailureOf(nil); f != nil || f.Err() != nil {
		t.Error("no error is one")
	}
}
