package offline_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/offline/offlinetest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// converterVar makes the test binary a converter that has the stream itself for HDF5: it is run in
// the place of Python. What the real one makes of Minari's files cmd/peers/minari_layout.py
// compares.
const converterVar = "ONNXRL_TEST_CONVERTER"

func TestMain(m *testing.M) {
	if os.Getenv(converterVar) != "" {
		if err := convert(os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, "a traceback\n"+err.Error())
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// convert is called as python -c SOURCE MODE FOLDER.
func convert(mode, folder string) error {
	path := filepath.Join(folder, "stream")
	if mode == "write" {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if _, err := io.Copy(f, os.Stdin); err != nil {
			return err
		}
		return f.Close()
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	r := bufio.NewReader(f)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	head := map[string]any{}
	if err := json.Unmarshal(line, &head); err == nil {
		head["masked"] = head["mask"] != 0.0
		if line, err = json.Marshal(head); err != nil {
			return err
		}
	}
	_, err = os.Stdout.Write(append(line, '\n'))
	if err == nil {
		_, err = io.Copy(os.Stdout, r)
	}
	return err
}

func converter(t *testing.T) offline.Minari {
	t.Setenv(converterVar, "1")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return offline.Minari{Python: exe}
}

// TestMinariRoundTrip: what is exported and imported again has the same bits.
func TestMinariRoundTrip(t *testing.T) {
	c, compared := converter(t), 0
	list := specs(t)
	delete(list, "window")
	delete(list, "costs")
	for what, spec := range sorted.All(longtest.Few(t, list, 2)) {
		d := offlinetest.Dataset(t, spec, 70)
		to, back := filepath.Join(t.TempDir(), "minari"), filepath.Join(t.TempDir(), "back")
		if err := c.Export(t.Context(), d, to, "toy/v0", nil); err != nil {
			t.Fatal(what, err)
		}
		m, err := c.Import(t.Context(), to, back, nil)
		if err != nil {
			t.Fatal(what, err)
		}
		if m.Episodes != 70 || m.Transitions != d.Transitions || len(m.Files) != 2 || m.Mask != d.Mask {
			t.Errorf("%s: %+v", what, m)
		}
		x, err := offline.Open(back)
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Fits(spec); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if a, b := fmt.Sprintf("%+v", episodesOf(t, d)), fmt.Sprintf("%+v", episodesOf(t, x)); a != b {
			t.Errorf("%s: episodes differ", what)
		}
		compared++
	}
	if compared != longtest.Cases(t, 5, 2) {
		t.Errorf("%d data sets", compared)
	}
}

// TestMinariRefuses: streams that end, or that state what cannot be, are errors, and leave nothing.
func TestMinariRefuses(t *testing.T) {
	c := converter(t)
	const head = `{"observation": [{"name": "observation", "space": {"type": "box", "dtype": "float32", "shape": [2], "low": ["-inf"], "high": ["+inf"]}}], "action": {"type": "discrete", "n": [3]}}` + "\n"
	cases := map[string]string{
		"unexpected EOF":       head,
		"the converter's line": "this is no JSON\n",
		"of type":              head + `{"length": "x"}` + "\n",
		"16777216":             head + `{"length": 1000000000000}` + "\n",
		"there is no episode":  head + `{"end": true}` + "\n",
		// The second action, and then the second reward.
		"episode 0, step 1: action: 3, expected 0 to 2": head + `{"length": 2}` + "\n" + strings.Repeat("\x00", 3*8+8) + "\x03" + strings.Repeat("\x00", 7+2*8+2*2) + `{"end": true}` + "\n",
		"episode 0, step 1: the reward is NaN":          head + `{"length": 2}` + "\n" + strings.Repeat("\x00", 3*8+2*8+8+6) + "\xf8\x7f" + strings.Repeat("\x00", 2*2) + `{"end": true}` + "\n",
		"ends with step 0":                              head + `{"length": 2}` + "\n" + strings.Repeat("\x00", 3*8+2*8+2*8) + "\x01\x00\x00\x00" + `{"end": true}` + "\n",
		"no such file or directory":                     "",
	}
	for want, stream := range sorted.All(cases) {
		from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
		if stream != "" {
			if err := os.WriteFile(filepath.Join(from, "stream"), []byte(stream), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		_, err := c.Import(t.Context(), from, to, nil)
		agenttest.Has(t, err, want, "import")
		if list, err := os.ReadDir(filepath.Dir(to)); err != nil || len(list) > 0 {
			t.Errorf("%s: there is %v, %v", want, list, err)
		}
	}
	if len(cases) != 9 {
		t.Errorf("%d cases", len(cases))
	}
	d := offlinetest.Dataset(t, agenttest.Box(), 2)
	for want, export := range sorted.All(map[string]func(to string) error{
		"exists": func(string) error { return c.Export(t.Context(), d, t.TempDir(), "x/v0", nil) },
		"costs": func(to string) error {
			return c.Export(t.Context(), offlinetest.Dataset(t, agenttest.Costly(agenttest.Box()), 2), to, "x/v0", nil)
		},
		"window": func(to string) error {
			return c.Export(t.Context(), offlinetest.Dataset(t, agenttest.Series(t), 2), to, "x/v0", nil)
		},
		"canceled": func(to string) error {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return c.Export(ctx, d, to, "x/v0", nil)
		},
	}) {
		to := filepath.Join(t.TempDir(), "to")
		agenttest.Has(t, export(to), want)
		if list, err := os.ReadDir(filepath.Dir(to)); err != nil || len(list) > 0 {
			t.Errorf("%s: there is %v, %v", want, list, err)
		}
	}
}
