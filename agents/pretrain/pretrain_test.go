package pretrain

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/fit"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

const market = `
seed: 1
env:
  kind: trading
  window: 6
  episode: {kind: random, length: 40}
  data:
    synthetic: {kind: noise, seed: 3, bars: 300, assets: 2}
    features: {prices: relative, volume: log, indicators: {rsi: [5]}}
    split: {train: [2000-01-03, 2000-08-31], valid: [2000-09-01, 2000-11-01], test: [2000-11-02, 2001-01-10]}
agent: {kind: a2c}
`

const document = `
stride: 3
fit:
  network: {encoder: {kind: mlp, hidden: [4]}, outputs: {volatility: 1, return: 1, returns: 5}}
  loss: [{output: volatility, kind: mse}, {output: return, kind: mse}, {output: returns, kind: mse}]
  batch: 16
  epochs: 2
`

// environments opens the market.
func environments(t *testing.T, text string) envs.Factory {
	t.Helper()
	doc, err := configs.Parse("market", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	k := kinds.All()
	c, err := k.Decode(doc)
	if err != nil {
		t.Fatal(err)
	}
	_, f, _, err := k.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func options(t *testing.T, dir string) Options {
	t.Helper()
	var c Config
	doc, err := configs.Parse("document", []byte(document))
	if err == nil {
		err = doc.Decode(&c)
	}
	if err != nil {
		t.Fatal(err)
	}
	e := portable.New()
	t.Cleanup(func() { _ = e.Close() })
	return Options{Config: c, Environments: environments(t, market), Dir: dir, Engine: e, Encoders: kinds.All().Encoders}
}

// read reads an encoder, and its bytes without what it says of itself, such as where it was
// trained.
func read(t *testing.T, path string) (*onnx.Model, []byte) {
	t.Helper()
	m, err := onnx.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	m.MetadataProps = nil
	b, err := onnx.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return m, b
}

// TestTrain: what was stopped after each step goes on to the same encoder, several that share it
// train it once, and the file gives features of a window.
func TestTrain(t *testing.T) {
	whole := t.TempDir()
	o := options(t, whole)
	var steps int64
	o.Step = func(p fit.Progress) { steps = p.TotalSteps }
	path, err := Train(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if steps < 4 {
		t.Fatal(steps)
	}
	m, want := read(t, path)
	outputs := map[string]bool{}
	for _, v := range m.Graph.Output {
		outputs[v.Name] = true
	}
	if !outputs[Features] || len(outputs) != 4 {
		t.Errorf("outputs %v", outputs)
	}
	if _, err := os.Stat(filepath.Join(whole, windowsFile)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the table of windows is still there", err)
	}

	// It is a version, also where the process was killed before it was one.
	store := filepath.Join(whole, publish.StoreDir)
	version := func() artifact.Version {
		s, v, err := artifact.Find(Artefact, store)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		m, err := onnx.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		if is, err := v.Is(m); err != nil || !is || v.Manifest.Kind != "encoder" || v.Manifest.LearnerStep != steps || v.Manifest.Seed == nil {
			t.Errorf("%+v, %v", v.Manifest, err)
		}
		return v
	}
	first := version()
	if err := os.RemoveAll(store); err != nil {
		t.Fatal(err)
	}
	if _, err := Train(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if again := version(); again.Digest != first.Digest {
		t.Errorf("the encoder is %s and %s", first, again)
	}

	o.Dir = t.TempDir()
	stops := 0
	for {
		ctx, cancel := context.WithCancel(t.Context())
		o.Step = func(fit.Progress) { cancel() }
		path, err = Train(ctx, o)
		cancel()
		if err == nil {
			break
		}
		if stops++; !errors.Is(err, context.Canceled) || int64(stops) > steps {
			t.Fatal(stops, err)
		}
	}
	if _, got := read(t, path); !bytes.Equal(got, want) || int64(stops) < steps-1 {
		t.Errorf("after %d of %d stops: equal %t", stops, steps, bytes.Equal(got, want))
	}

	o.Dir = t.TempDir()
	var mu sync.Mutex
	trained := int64(0)
	o.Step = func(fit.Progress) {
		mu.Lock()
		defer mu.Unlock()
		trained++
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, err := Train(t.Context(), o); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if trained != steps {
		t.Errorf("three that share an encoder took %d steps, expected %d", trained, steps)
	}
}

func TestRefusals(t *testing.T) {
	o := options(t, t.TempDir())
	o.Environments = environments(t, "env: {kind: pendulum}\nagent: {kind: sac}\n")
	if _, err := Train(t.Context(), o); err == nil || !strings.Contains(err.Error(), "is not trading") {
		t.Errorf("%v", err)
	}
	o = options(t, t.TempDir())
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o.Dir = filepath.Join(blocked, "inside")
	if _, err := Train(t.Context(), o); err == nil {
		t.Error("a directory below a file was taken")
	}
}
