//go:build !cgo

package ort

import (
	"errors"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/ort/floor"
)

func TestWithoutCgo(t *testing.T) {
	if _, err := New(t.Context(), Options{}); !errors.Is(err, ErrUnavailable) {
		t.Errorf("New: %v, expected %v", err, ErrUnavailable)
	}
	if _, err := Info(); !errors.Is(err, ErrUnavailable) {
		t.Errorf("Info: %v, expected %v", err, ErrUnavailable)
	}
	if err := floor.Runs(nil, nil); !errors.Is(err, floor.ErrForeign) {
		t.Errorf("floor: %v, expected %v", err, floor.ErrForeign)
	}
	if l := Live(); l != (Objects{}) {
		t.Errorf("objects %+v", l)
	}
}
