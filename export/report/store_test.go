package report

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/atomicfile/faultdisk"
)

// Whatever fails while a report replaces another, every file is one of the old or the new ones, and
// the page is new only when all the others are.
func TestFailuresKeepWholeFiles(t *testing.T) {
	old := []file{{"equity.csv", []byte("old table")}, {filepath.Join(plotFolder, "lag.svg"), []byte("old lag")}, {filepath.Join(plotFolder, "equity.svg"), []byte("old plot")}, {SummaryName, []byte("old summary")}, {PageName, []byte("old page")}}
	next := []file{{"equity.csv", []byte("new table")}, {filepath.Join(plotFolder, "equity.svg"), []byte("new plot")}, {SummaryName, []byte("new summary")}, {PageName, []byte("new page")}}
	runs := 0
	for n := 1; ; n++ {
		dir := t.TempDir()
		if err := store(context.Background(), atomicfile.OS, dir, old); err != nil {
			t.Fatal(err)
		}
		disk := faultdisk.New(atomicfile.OS)
		broken := errors.New("broken")
		disk.FailAt(n, broken)
		err := store(context.Background(), disk, dir, next)
		if disk.Failed() != errors.Is(err, broken) {
			t.Errorf("operation %d: failed %v, error %v", n, disk.Failed(), err)
		}
		changed := 0
		for i, f := range next {
			data, err := os.ReadFile(filepath.Join(dir, f.name))
			was := old[0].data
			for _, o := range old {
				if o.name == f.name {
					was = o.data
				}
			}
			switch {
			case err != nil:
				t.Errorf("operation %d: %v", n, err)
			case string(data) == string(f.data):
				if changed++; changed != i+1 {
					t.Errorf("operation %d: %s is new and one before it is not", n, f.name)
				}
			case string(data) != string(was):
				t.Errorf("operation %d: %s holds %q", n, f.name, data)
			}
		}
		runs++
		if !disk.Failed() {
			if _, err := os.Stat(filepath.Join(dir, plotFolder, "lag.svg")); err == nil {
				t.Error("the plot of the report before is still there")
			}
			break
		}
	}
	if runs < 4*len(next) {
		t.Errorf("%d runs", runs)
	}
}
