package app

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/transfer"
)

// TestPrintTransfer: each parameter has a line, and no line ends with spaces.
func TestPrintTransfer(t *testing.T) {
	r := &transfer.Report{
		Source: "a.onnx", Matched: []transfer.Match{{Name: "a", From: "a", Shape: []int{2}}, {Name: "longer", From: "b", Shape: []int{3}}},
		ShapeMismatch: []transfer.Mismatch{{Name: "c", Network: []int{1}, Source: []int{2}}}, New: []transfer.Param{{Name: "d", Shape: []int{4}}}, LeftOver: []transfer.Param{{Name: "e", Shape: []int{5}}},
	}
	var b strings.Builder
	if err := printTransfer(&b, r); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if strings.Count(text, "\n") != 6 || strings.Contains(text, " \n") || !strings.Contains(text, "longer") || !strings.Contains(text, "from b") {
		t.Errorf("it prints\n%s", text)
	}
}
