package golden

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

// TestGoldenServe serves what an older program published: a request over HTTP is answered with its
// digits.
func TestGoldenServe(t *testing.T) {
	t.Parallel()
	goldenOnly(t)
	kept := filepath.Join("testdata", "resumed", "a2c_market")
	args := apptest.ServeLine("--store", filepath.Join(kept, "artifacts"), "--engine", "portable")
	outputs := func(s *apptest.Server) string {
		var answer struct {
			Outputs json.RawMessage `json:"outputs"`
		}
		if err := json.Unmarshal([]byte(s.Want(200, "/v2/models/"+goldenStored+"/infer", goldenRequest(t))), &answer); err != nil {
			t.Fatal(err)
		}
		if code := s.Stop(); code != 0 {
			t.Errorf("the server's exit status is %d", code)
		}
		return string(answer.Outputs)
	}
	path := filepath.Join(kept, "served.json")
	if *goldenFrom != "" {
		write(t, path, []byte(outputs(apptest.StartServer(t, olderProgram(t, args...)))+"\n"))
	}
	var want []struct {
		Name string `json:"name"`
		Data []any  `json:"data"`
	}
	apptest.ReadJSON(t, path, &want)
	if len(want) != 3 || len(want[1].Data) != 2*15 {
		t.Fatalf("nothing to compare with: %+v", want)
	}
	if got := outputs(apptest.StartServer(t, apptest.Program(t, args...))); got+"\n" != apptest.ReadText(t, path) {
		t.Errorf("the answer is\n%s\nexpected\n%s", got, apptest.ReadText(t, path))
	}
}

// goldenRequest is two made-up observations: windows of 20 bars, five assets and 29 features.
func goldenRequest(t *testing.T) string {
	t.Helper()
	type input struct {
		Name     string `json:"name"`
		Datatype string `json:"datatype"`
		Shape    []int  `json:"shape"`
		Data     any    `json:"data"`
	}
	// Eighths are the same number in every notation.
	ramp := func(n, period int) []float64 {
		list := make([]float64, n)
		for i := range list {
			list[i] = float64(i%period-period/2) / 8
		}
		return list
	}
	mask := make([]bool, 2*15)
	for i := range mask {
		mask[i] = i%7 != 3
	}
	text, err := json.Marshal(map[string]any{"inputs": []input{
		{"window", "FP32", []int{2, 20, 5, 29}, ramp(2*20*5*29, 13)},
		{"position", "FP32", []int{2, 5}, ramp(2*5, 4)},
		{"cash", "FP32", []int{2, 1}, []float64{0.25, 0.75}},
		{"mask", "BOOL", []int{2, 15}, mask},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
