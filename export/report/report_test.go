package report_test

import (
	"bytes"
	"os"
	"testing"

	"onnxrl/export/report"
)

func TestShow(t *testing.T) {
	s, err := report.Summarise(sample(16, 750, 10, 0.0005))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Print(&b); err != nil {
		t.Fatal(err)
	}
	os.Stdout.Write(b.Bytes())
}
