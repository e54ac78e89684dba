package decisions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// policy answers with an action that is the first number of the input, 9 with an error, and 8 with
// no action.
type policy struct{ serve.Service }

func (policy) Infer(_ context.Context, req *serve.Request, resp *serve.Response) error {
	x := req.Inputs[0].Value.Float32s()[0]
	if x == 9 {
		return errors.New("no")
	}
	*resp = serve.Response{Model: req.Model, Version: "3"}
	if x != 8 {
		resp.Outputs = []serve.Tensor{{Name: "value", Value: tensor.Of([]float32{0}, 1)}, {Name: Action, Value: tensor.Of([]int64{int64(x)}, 1)}}
	}
	return nil
}

// asked is a request of a sequence.
type asked struct {
	id    string
	x     float32
	flags string // of start, end, terminated, truncated and reward
	want  float64
}

func (a asked) request() *serve.Request {
	has := func(c string) bool { return strings.Contains(a.flags, c) }
	return &serve.Request{
		ID: "r", Model: "m", Inputs: []serve.Tensor{{Name: "x", Value: tensor.Of([]float32{a.x, 0.1}, 1, 2)}, {Name: "mask", Value: tensor.Of([]bool{true, false}, 1, 2)}},
		Sequence: serve.Sequence{ID: a.id, Start: has("s"), End: has("e"), Outcome: serve.Outcome{Given: has("r"), Reward: a.want, Terminated: has("t"), Truncated: has("c")}},
	}
}

// logged runs requests and returns the lines, with time stamps replaced.
func logged(t *testing.T, path string, list ...asked) (string, Counts) {
	t.Helper()
	l, err := New(policy{}, path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range list {
		var resp serve.Response
		if err := l.Infer(t.Context(), a.request(), &resp); (err != nil) != (a.x == 9) {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`20\d\d-[0-9T:.-]+Z`).ReplaceAllString(string(b), "T"), l.Counts()
}

const info = `,"info":{"time":"T","model":"m","version":"3","request":"r"}}` + "\n"

func line(id string, step int, x float32, reward string) string {
	return fmt.Sprintf(`{"episode":"%s T","step":%d,"obs":{"x":[%v,0.1],"mask":[1,0]},"action":[%v],"reward":%s`, id, step, x, x, reward)
}

func final(x float32) string { return fmt.Sprintf(`,"final_obs":{"x":[%v,0.1],"mask":[1,0]}`, x) }

func TestLog(t *testing.T) {
	nan := math.NaN()
	cases := map[string]struct {
		list   []asked
		want   string
		broken uint64
	}{
		"two sequences that alternate": {[]asked{{"1", 1, "s", 0}, {"2", 2, "s", 0}, {"1", 3, "r", 0.5}, {"2", 4, "rte", -1}, {"1", 5, "rce", 7}},
			line("1", 0, 1, "0.5") + info + line("2", 0, 2, "-1") + `,"terminated":true` + final(4) + info + line("1", 1, 3, "7") + `,"truncated":true` + final(5) + info, 0},
		"on their own":                   {[]asked{{"", 1, "", 0}, {"", 1, "s", 0}}, "", 0},
		"an end that says nothing":       {[]asked{{"1", 1, "s", 0}, {"1", 2, "r", 1}, {"1", 3, "e", 0}}, line("1", 0, 1, "1") + info, 0},
		"a start without an end":         {[]asked{{"1", 1, "s", 0}, {"1", 2, "s", 0}, {"1", 3, "re", 4}}, line("1", 0, 2, "4") + info, 0},
		"no reward, and then one":        {[]asked{{"1", 1, "s", 0}, {"1", 2, "", 0}, {"1", 3, "r", 4}, {"1", 3, "rte", 4}}, "", 1},
		"a reward that is none":          {[]asked{{"1", 1, "s", 0}, {"1", 2, "r", nan}, {"1", 3, "rte", 4}}, "", 1},
		"a request that fails":           {[]asked{{"1", 1, "s", 0}, {"1", 9, "r", 1}, {"1", 3, "r", 4}}, "", 1},
		"no action":                      {[]asked{{"1", 1, "s", 0}, {"1", 8, "r", 1}, {"1", 3, "r", 4}}, line("1", 0, 1, "1") + info, 1},
		"a final request without action": {[]asked{{"1", 1, "s", 0}, {"1", 8, "rte", 1}}, line("1", 0, 1, "1") + `,"terminated":true` + final(8) + info, 0},
		"begun before there was a log":   {[]asked{{"1", 1, "r", 4}, {"1", 2, "re", 4}}, "", 0},
		"an observation that is none":    {[]asked{{"1", float32(nan), "s", 0}, {"1", 3, "r", 4}}, "", 1},
	}
	n := 0
	for what, c := range sorted.All(cases) {
		got, counts := logged(t, filepath.Join(t.TempDir(), "log"), c.list...)
		if got != c.want || counts.Broken != c.broken || counts.Lines != uint64(strings.Count(c.want, "\n")) {
			t.Errorf("%s: %+v\n%s\nexpected\n%s", what, counts, got, c.want)
		}
		n++
	}
	if n != 11 {
		t.Errorf("%d cases", n)
	}
}

// TestContinues: a log goes on after its last whole line.
func TestContinues(t *testing.T) {
	n := 0
	for _, c := range [][2]string{{"", ""}, {"{}\n", "{}\n"}, {"{}\n{\"torn", "{}\n"}, {"torn", ""}, {"{}\n" + strings.Repeat("x", 10000), "{}\n"}, {strings.Repeat("x", 10000) + "\n{", strings.Repeat("x", 10000) + "\n"}} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(c[0]), 0o644); err != nil {
			t.Fatal(err)
		}
		got, _ := logged(t, path, asked{"1", 1, "s", 0}, asked{"1", 2, "re", 3})
		if want := c[1] + line("1", 0, 1, "3") + info; got != want {
			t.Errorf("%q: %q", c[0], got)
		}
		n++
	}
	if _, err := New(policy{}, t.TempDir(), slog.New(slog.DiscardHandler)); err == nil || n != 6 {
		t.Errorf("a folder was opened as a log: %v, %d cases", err, n)
	}
}

// TestManyAtOnce: episodes of clients at the same time are whole, whatever is left out.
func TestManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := New(policy{}, path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	const clients, steps = 8, 500
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for s := range steps + 1 {
				a := asked{fmt.Sprint(c), float32(s % 8), "r", float64(s)}
				switch s {
				case 0:
					a.flags = "s"
				case steps:
					a.flags = "rte"
				}
				var resp serve.Response
				if err := l.Infer(context.Background(), a.request(), &resp); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	counts := l.Counts()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	next, lines := map[string]int{}, 0
	for text := range strings.Lines(string(b)) {
		var id string
		var step int
		if _, err := fmt.Sscanf(text, `{"episode":"%s`, &id); err != nil {
			t.Fatal(text, err)
		}
		if _, err := fmt.Sscanf(text[strings.Index(text, `"step":`):], `"step":%d`, &step); err != nil || step != next[id] {
			t.Fatalf("client %s: step %d, expected %d: %v", id, step, next[id], err)
		}
		next[id]++
		lines++
	}
	if lines != int(counts.Lines) || counts.Broken == 0 && lines != clients*steps || len(next) != clients {
		t.Errorf("%d lines, %+v", lines, counts)
	}
}
