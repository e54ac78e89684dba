package study_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
)

// TestLargeStudies: a record of many cells is read again, or refused before anything is trained.
func TestLargeStudies(t *testing.T) {
	doc, err := configs.Open(filepath.Join("..", "..", "configs", "experiments", "qtmrl.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	c := experiment.Defaults()
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{100, 1000} {
		cells, dir := make([]study.Cell, n), t.TempDir()
		for i := range cells {
			cells[i] = study.Cell{Name: fmt.Sprint("cell ", i), Dir: fmt.Sprint(i), Config: c}
		}
		err := study.Write(dir, struct{}{}, cells)
		if n == 1000 {
			if err == nil || !strings.Contains(err.Error(), "1000 cells are more than a study can have") {
				t.Errorf("%d cells: %v", n, err)
			}
			if _, err := os.Stat(filepath.Join(dir, run.StudyFile)); err == nil {
				t.Errorf("%d cells: the record was written", n)
			}
			continue
		}
		if err == nil {
			err = study.Compare(dir, cells)
		}
		if err != nil {
			t.Errorf("%d cells: %v", n, err)
		}
	}
}
