package record_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/record"
)

// TestGoldenWorlds computes recorded official worlds again; they are read where
// ONNXRL_SCML_RECORDINGS points.
func TestGoldenWorlds(t *testing.T) {
	golden := map[string]record.Checked{
		"world_A_2proc.json":          {Days: 20},
		"world_B_3proc_bankrupt.json": {Days: 25, Bankrupt: 7, Dropped: 80},
	}
	dir := os.Getenv("ONNXRL_SCML_RECORDINGS")
	if dir == "" {
		fmt.Printf("0 of %d golden worlds computed (set ONNXRL_SCML_RECORDINGS)\n", len(golden))
		return
	}
	files, err := filepath.Glob(filepath.Join(dir, "world_*.json"))
	if err != nil || len(files) != len(golden) {
		t.Fatalf("%d worlds, expected %d (%v)", len(files), len(golden), err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			file, err := record.Read(path)
			if err != nil {
				t.Fatal(err)
			}
			got, err := record.Replay(file)
			if err != nil {
				t.Fatal(err)
			}
			want := golden[filepath.Base(path)]
			if got.Days != want.Days || got.Bankrupt != want.Bankrupt || got.Dropped != want.Dropped || got.Numbers < 2000 || got.Contracts < 100 {
				t.Errorf("%+v, expected %+v", got, want)
			}
			t.Logf("%+v", got)
		})
	}
}

// TestRecordedLogs computes a world again from the folder that the official program wrote; it is
// read where ONNXRL_SCML_RECORDINGS points.
func TestRecordedLogs(t *testing.T) {
	dir := os.Getenv("ONNXRL_SCML_RECORDINGS")
	if dir == "" {
		fmt.Println("0 of 1 recorded folders computed (set ONNXRL_SCML_RECORDINGS)")
		return
	}
	file, err := record.Open(filepath.Join(dir, "samples", "world_full"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := record.Replay(file)
	if err != nil || got.Days != 5 || got.Contracts != 61 || got.Dropped != 10 || got.Bankrupt != 3 {
		t.Errorf("%+v, %v", got, err)
	}
}
