package decisions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/models/decisionlog"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// fake is a policy: heads are two choices of 2 and 3, and the Gaussian has two components.
type fake struct {
	serve.Service
	info map[string]string
	// answer fills in outputs for rows, with the noise, if any.
	answer func(rows int, noise []float32) []serve.Tensor
	noise  bool
}

func (f *fake) Metadata(model, version string) (serve.Metadata, error) {
	m := serve.Metadata{Name: model, Version: "3", MaxBatch: 8, Info: f.info, Inputs: []serve.Port{{Name: "x", DType: tensor.Float32, Shape: []int{-1, 2}}}}
	if f.noise {
		m.Inputs = append(m.Inputs, serve.Port{Name: bake.NoiseInput, DType: tensor.Float32, Shape: []int{-1, 2}})
	}
	return m, nil
}

func (f *fake) Infer(_ context.Context, req *serve.Request, resp *serve.Response) error {
	if req.Outputs != nil {
		return errors.New("the log asks for all outputs")
	}
	x := req.Inputs[0].Value
	var noise []float32
	if len(req.Inputs) > 1 {
		noise = req.Inputs[1].Value.Float32s()
	} else if f.noise {
		return errors.New("noise is missing")
	}
	*resp = serve.Response{ID: req.ID, Model: req.Model, Version: "3", Digest: "sha256:ab", Outputs: f.answer(x.Shape()[0], noise)}
	return nil
}

var probabilities = [2][]float64{{0.25, 0.75}, {0.5, 0.2, 0.3}}

func choices(rows int, _ []float32) []serve.Tensor {
	a, p := tensor.New(tensor.Int64, rows, 2), tensor.New(tensor.Float32, rows, 5)
	for i := range rows {
		a.Int64s()[2*i] = 1
		for k, q := range append(append([]float64{}, probabilities[0]...), probabilities[1]...) {
			p.Float32s()[5*i+k] = float32(math.Log(q))
		}
	}
	return []serve.Tensor{{Name: Action, Value: a}, {Name: scores, Value: p}}
}

var mean, deviation = []float64{0.3, -0.2}, []float64{0.5, 0.25}

// gaussian makes mean + σ·noise an action by f.
func gaussian(f func(u float64) float64) func(int, []float32) []serve.Tensor {
	return func(rows int, noise []float32) []serve.Tensor {
		out := []serve.Tensor{}
		for _, name := range []string{Action, bake.SampleOutput, means, logStds} {
			out = append(out, serve.Tensor{Name: name, Value: tensor.New(tensor.Float32, rows, 2)})
		}
		for k := range 2 * rows {
			m, s := mean[k%2], deviation[k%2]
			for i, v := range []float64{f(m), f(m + s*float64(noise[k])), m, math.Log(s)} {
				out[i].Value.Float32s()[k] = float32(v)
			}
		}
		return out
	}
}

// ask sends requests of rows, and returns what was logged, and the answers.
func ask(t *testing.T, f *fake, o Options, requests, rows int, edit func(*serve.Request)) ([]decisionlog.Row, []serve.Response, Counts) {
	t.Helper()
	o.Dir, o.Every, o.Log = t.TempDir(), time.Hour, slog.New(slog.DiscardHandler)
	l, err := New(f, o)
	if err != nil {
		t.Fatal(err)
	}
	answers := make([]serve.Response, requests)
	for i := range answers {
		req := &serve.Request{Model: "m", Inputs: []serve.Tensor{{Name: "x", Value: tensor.New(tensor.Float32, rows, 2)}}}
		if edit != nil {
			edit(req)
		}
		if err := l.Infer(t.Context(), req, &answers[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(l.Close(), l.Close()); err != nil {
		t.Fatal(err)
	}
	var list []decisionlog.Row
	if n := l.Counts(); n.Published > 0 {
		err = decisionlog.Read(t.Context(), o.Dir, "m", func(_ *decisionlog.Layout, r *decisionlog.Row) error {
			c := *r
			c.Data = append([]byte(nil), r.Data...)
			list = append(list, c)
			return nil
		})
	}
	if err != nil || uint64(len(list)) != l.Counts().Published {
		t.Fatal(len(list), l.Counts(), err)
	}
	return list, answers, l.Counts()
}

// TestChoices: choices are drawn as often as their probability says, which is logged; without
// exploring the best ones are taken, with probability 1.
func TestChoices(t *testing.T) {
	f := &fake{info: map[string]string{"onnxrl.heads": "2,3"}, answer: choices}
	list, answers, _ := ask(t, f, Options{}, 3, 4, nil)
	for i, r := range list {
		if r.LogProb != 0 || r.Row != int32(i%4) || r.Request != answers[i/4].ID || r.Version != "3" || r.Digest != "sha256:ab" || !math.IsNaN(r.Reward) || r.Data[8] != 1 || r.Data[16] != 0 {
			t.Fatalf("%+v", r)
		}
	}
	if len(list) != 12 || answers[0].ID == "" || answers[0].ID == answers[1].ID {
		t.Fatal(len(list), answers[0].ID)
	}
	const n = 4000
	list, answers, _ = ask(t, f, Options{Explore: true, Wait: true}, n/4, 4, nil)
	count := map[[2]int]int{}
	for i, r := range list {
		a := [2]int{int(r.Data[8]), int(r.Data[16])}
		count[a]++
		if want := math.Log(probabilities[0][a[0]] * probabilities[1][a[1]]); math.Abs(r.LogProb-want) > 1e-6 {
			t.Fatalf("%v: %v, expected %v", a, r.LogProb, want)
		}
		if got := answers[i/4].Outputs[0].Value.Int64s()[2*(i%4):]; got[0] != int64(a[0]) || got[1] != int64(a[1]) {
			t.Fatalf("the answer is %v, and %v was logged", got[:2], a)
		}
	}
	cases := 0
	for i, p := range probabilities[0] {
		for k, q := range probabilities[1] {
			if share, e := float64(count[[2]int{i, k}])/n, p*q; math.Abs(share-e) > 4*math.Sqrt(e*(1-e)/n) {
				t.Errorf("%d, %d: drawn in %.3f, expected %.3f", i, k, share, e)
			}
			cases++
		}
	}
	if len(list) != n || cases != 6 {
		t.Error(len(list), cases)
	}
}

// TestDensity compares logged densities with those of the transformed normal distribution, by the
// derivative of the transformation: of noise that is drawn, and of the client's own.
func TestDensity(t *testing.T) {
	cases := 0
	for what, x := range sorted.All(map[string]struct {
		f, slope func(float64) float64
		info     map[string]string
		slack    float64
		// from is the first decision whose density is known well.
		from int
	}{
		"plain": {func(u float64) float64 { return u }, func(float64) float64 { return 1 }, map[string]string{bake.MetaNoise: "normal"}, 1e-4, 0},
		"squashed, scale told": {func(u float64) float64 { return 1 + 3*math.Tanh(u) }, func(u float64) float64 { return 3 * (1 - math.Tanh(u)*math.Tanh(u)) },
			map[string]string{bake.MetaNoise: "normal", bake.MetaSquash: "tanh", bake.MetaSquashScale: "3,3"}, 1e-4, 0},
		"squashed": {func(u float64) float64 { return 1 + 3*math.Tanh(u) }, func(u float64) float64 { return 3 * (1 - math.Tanh(u)*math.Tanh(u)) },
			map[string]string{bake.MetaNoise: "normal", bake.MetaSquash: "tanh"}, 1e-3, 21},
	}) {
		for _, own := range []bool{false, true} {
			var edit func(*serve.Request)
			if own {
				edit = func(r *serve.Request) {
					r.Inputs = append(r.Inputs, serve.Tensor{Name: bake.NoiseInput, Value: tensor.Of([]float32{1, -1.5, 0.5, 2}, 2, 2)})
				}
			}
			list, answers, _ := ask(t, &fake{info: x.info, answer: gaussian(x.f), noise: true}, Options{Explore: !own}, 50, 2, edit)
			if len(list) != 100 {
				t.Fatal(len(list))
			}
			for i, r := range list {
				want, name := 0.0, Action
				if own {
					name = bake.SampleOutput
				}
				for c := range 2 {
					a := 0.0
					for _, o := range answers[i/2].Outputs {
						if o.Name == name {
							a = float64(o.Value.Float32s()[2*(i%2)+c])
						}
					}
					u := a
					if x.info[bake.MetaSquash] != "" {
						u = math.Atanh((a - 1) / 3)
					}
					z := (u - mean[c]) / deviation[c]
					want += -z*z/2 - math.Log(deviation[c]*math.Sqrt(2*math.Pi)) - math.Log(x.slope(u))
				}
				if i >= x.from && !(math.Abs(r.LogProb-want) <= x.slack) {
					t.Errorf("%s, own noise %v: decision %d has %v, expected %v", what, own, i, r.LogProb, want)
				}
			}
			cases++
		}
	}
	if cases != 6 {
		t.Errorf("%d cases", cases)
	}
}

// TestDensityAtTheBounds: where tanh of mean and sample are both ±1, the density is finite from the
// first decision on if the scale is known, and unknown if it is not.
func TestDensityAtTheBounds(t *testing.T) {
	cases := 0
	for _, m := range []float32{-500, -12, 12, 500} {
		for _, scale := range []string{"", "3", "3,3", "0,3", "3,3,3"} {
			info := map[string]string{bake.MetaNoise: "normal", bake.MetaSquash: "tanh"}
			if scale != "" {
				info[bake.MetaSquashScale] = scale
			}
			f := &fake{info: info, noise: true, answer: func(rows int, noise []float32) []serve.Tensor {
				mean, std, best, sample := tensor.New(tensor.Float32, rows, 2), tensor.New(tensor.Float32, rows, 2), tensor.New(tensor.Float32, rows, 2), tensor.New(tensor.Float32, rows, 2)
				for i := range mean.Float32s() {
					mean.Float32s()[i] = m
					best.Float32s()[i], sample.Float32s()[i] = float32(3*math.Tanh(float64(m))), float32(3*math.Tanh(float64(m+noise[i])))
				}
				return []serve.Tensor{{Name: Action, Value: best}, {Name: means, Value: mean}, {Name: logStds, Value: std}, {Name: bake.SampleOutput, Value: sample}}
			}}
			list, _, _ := ask(t, f, Options{Explore: true}, 3, 2, nil)
			for i, r := range list {
				if told := scale == "3" || scale == "3,3"; told != !math.IsNaN(r.LogProb) || math.IsInf(r.LogProb, 0) {
					t.Errorf("mean %g, scale %q: decision %d has %g", m, scale, i, r.LogProb)
				}
				cases++
			}
		}
	}
	if cases != 120 {
		t.Errorf("%d cases", cases)
	}
}

// TestForms has requests that ask for some outputs, models that are no policies, and actions
// without a density.
func TestForms(t *testing.T) {
	f := &fake{answer: choices, info: map[string]string{"onnxrl.heads": "2,3"}}
	outputs := func(names ...string) func(*serve.Request) {
		return func(r *serve.Request) { r.Outputs = names }
	}
	_, answers, n := ask(t, f, Options{Explore: true}, 2, 1, outputs(Action))
	if n != (Counts{Published: 2}) || len(answers[0].Outputs) != 1 || answers[0].Outputs[0].Name != Action {
		t.Errorf("%+v, %+v", n, answers[0])
	}
	if _, answers, n = ask(t, f, Options{}, 2, 3, outputs(scores)); n != (Counts{Form: 6}) || answers[0].Outputs[0].Name != scores {
		t.Errorf("%+v, %+v", n, answers[0])
	}
	none := &fake{answer: func(rows int, _ []float32) []serve.Tensor {
		return []serve.Tensor{{Name: "y", Value: tensor.New(tensor.Float32, rows)}}
	}}
	if _, _, n = ask(t, none, Options{Explore: true}, 2, 1, nil); n != (Counts{}) {
		t.Errorf("%+v", n)
	}
	box := &fake{answer: func(rows int, _ []float32) []serve.Tensor {
		return []serve.Tensor{{Name: Action, Value: tensor.New(tensor.Float32, rows, 1)}}
	}}
	if list, _, _ := ask(t, box, Options{Explore: true}, 1, 1, nil); len(list) != 1 || !math.IsNaN(list[0].LogProb) {
		t.Errorf("%+v", list)
	}
	l, err := New(f, Options{Dir: t.TempDir(), Every: time.Hour, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	var resp serve.Response
	err = l.Infer(t.Context(), &serve.Request{Model: "m", Outputs: []string{"z"}, Inputs: []serve.Tensor{{Name: "x", Value: tensor.New(tensor.Float32, 1, 2)}}}, &resp)
	if serve.CodeOf(err) != serve.InvalidArgument {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestManyAtOnce: whatever the queue has no room for is counted, and the rest is whole.
func TestManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	l, err := New(&fake{answer: choices}, Options{Dir: dir, Every: 5 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	const clients, requests, rows = 4, 500, 8
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := range requests {
				var resp serve.Response
				if err := l.Infer(context.Background(), &serve.Request{ID: fmt.Sprint(c, " ", i), Model: "m", Inputs: []serve.Tensor{{Name: "x", Value: tensor.New(tensor.Float32, rows, 2)}}}, &resp); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	n, got := l.Counts(), uint64(0)
	seen := map[string]bool{}
	if err := decisionlog.Read(t.Context(), dir, "m", func(_ *decisionlog.Layout, r *decisionlog.Row) error {
		k := fmt.Sprint(r.Request, "/", r.Row)
		if seen[k] {
			return fmt.Errorf("%s comes twice", k)
		}
		seen[k] = true
		got++
		return nil
	}); err != nil || got != n.Published || n.Published+n.Queue != clients*requests*rows || n.Disk+n.Form != 0 {
		t.Errorf("%d rows, %+v: %v", got, n, err)
	}
}

// TestFolderRemoved has somebody remove the log's folder: it is made again, no further decision is
// lost, and those that were in it are reported and counted.
func TestFolderRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	var told strings.Builder
	l, err := New(&fake{answer: choices}, Options{Dir: dir, Every: 5 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&told, nil))})
	if err != nil {
		t.Fatal(err)
	}
	decide := func(n int) {
		t.Helper()
		for range n {
			var resp serve.Response
			if err := l.Infer(t.Context(), &serve.Request{Model: "m", Inputs: []serve.Tensor{{Name: "x", Value: tensor.New(tensor.Float32, 1, 2)}}}, &resp); err != nil {
				t.Fatal(err)
			}
		}
	}
	decide(3)
	for l.Counts().Published < 3 {
		time.Sleep(time.Millisecond)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	decide(2)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	got := 0
	if err := decisionlog.Read(t.Context(), dir, "m", func(*decisionlog.Layout, *decisionlog.Row) error { got++; return nil }); err != nil || got != 2 || l.Counts() != (Counts{Published: 5, Removed: 3}) {
		t.Errorf("%d rows, %+v: %v", got, l.Counts(), err)
	}
	if text := told.String(); strings.Count(text, "was removed and is made again") != 1 || !strings.Contains(text, "decisions=3") || !strings.Contains(text, dir) {
		t.Errorf("said %q", text)
	}
}
