package trader

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// bars writes daily bars of three stocks, of which the last is listed late, and returns the
// document of a run in them.
func bars(t *testing.T) experiment.Config {
	t.Helper()
	s := rng.New(1).Stream()
	text := new(strings.Builder)
	fmt.Fprintln(text, "date,symbol,open,high,low,close,volume")
	for day := range 400 {
		for i, symbol := range []string{"AA", "BB", "CC"} {
			if i == 2 && day < 200 {
				continue
			}
			p := 20 + 5*s.Float64()
			fmt.Fprintf(text, "%s,%s,%.4f,%.4f,%.4f,%.4f,%d\n", time.Date(2020, 1, 1+day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), symbol, p, p+1, p-1, p+0.5, 1_000_000+1000*day)
		}
	}
	file := filepath.Join(t.TempDir(), "bars.csv")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return document(t, `env: {kind: trading, window: 10, data: {source: {path: "`+file+`"}, normalization: {clip: 4}, split: {train: [2020-01-01, 2020-07-31], valid: [2020-08-01, 2020-12-31], test: [2021-01-01, 2021-02-03]}}}`)
}

func document(t *testing.T, text string) experiment.Config {
	t.Helper()
	doc, err := configs.Parse("run.yaml", []byte("seed: 7\nagent: {kind: a2c}\npublish: {when: improvements, observations: 256, allow_ties: true}\n"+text+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := experiment.Defaults()
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

func open(t *testing.T, c experiment.Config) envs.Factory {
	t.Helper()
	f, err := envs.Open(t.Context(), []envs.Kind{Kind(), corridor.Kind}, c.Env)
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

// policy is one of random weights.
func policy(t *testing.T, f envs.Factory) train.Policy {
	t.Helper()
	e, err := f.New(envs.Valid, 0)
	if err != nil {
		t.Fatal(err)
	}
	spec := e.Spec()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	net, params := agenttest.Network(t, spec)
	return train.Policy{Network: net, Params: params, EnvSteps: 1000, LearnerSteps: 20, Metric: "sharpe", Score: 0.5, Metrics: map[string]float64{"sharpe": 0.5, "sortino": math.NaN()}}
}

// publication is what publishes policies into a new directory, with its store, which is opened once
// there is something in it.
type publication struct {
	*publish.Publisher
	dir string
}

func publisher(t *testing.T, c experiment.Config, f envs.Factory, e engine.Compiler) publication {
	t.Helper()
	dir := t.TempDir()
	p, err := publish.New(publish.Options{
		Config: c, Factory: f, Engine: e, Dir: dir, Name: "My Run!", Program: "onnxrl test", Parents: []string{"sha256:" + strings.Repeat("a", 64)},
		Sources: map[string]string{"data_sha256": strings.Repeat("0", 64)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return publication{p, dir}
}

func (p publication) file() string { return filepath.Join(p.dir, publish.BestFile) }

// version publishes a policy and returns the version.
func (p publication) version(t *testing.T, pol train.Policy) artifact.Version {
	t.Helper()
	ref, err := p.Publish(t.Context(), pol)
	if err != nil {
		t.Fatal(err)
	}
	s, err := artifact.Open(filepath.Join(p.dir, publish.StoreDir), artifact.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	v, err := s.Resolve(ref)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestPublishesMarketAgents publishes a policy, whose windows are scaled inside of the model, and runs
// what is read back beside the network. In another environment it has nothing to scale.
func TestPublishesMarketAgents(t *testing.T) {
	c := bars(t)
	f := open(t, c)
	pol := policy(t, f)
	for _, e := range testengines.All(t) {
		p := publisher(t, c, f, e)
		v := p.version(t, pol)
		if again := p.version(t, pol); again.String() != v.String() {
			t.Errorf("%s: the same policy is %v and then %v", e.Name(), v, again)
		}
		m := v.Manifest
		if m.Name != "my-run" || m.Kind != "agent" || *m.Seed != 7 || m.EnvStep != 1000 || m.LearnerStep != 20 || len(m.Parents) != 1 || m.Metrics["validation/sharpe"] != 0.5 || len(m.Metrics) != 1 || m.CodeVersion != "onnxrl test" || !strings.HasSuffix(m.DataDigest, "0000") {
			t.Errorf("%s: manifest %+v", e.Name(), m)
		}
		if m.Golden == nil || m.Golden.Rows != 4 {
			t.Errorf("%s: golden values %+v", e.Name(), m.Golden)
		}
		for _, with := range testengines.All(t) {
			if n, worst, err := v.CheckGolden(t.Context(), with); err != nil || n == 0 || worst > 1e-5 {
				t.Errorf("%s: golden values by %s: %d compared, worst %g, %v", e.Name(), with.Name(), n, worst, err)
			}
		}
		var pipe pipeline
		if err := json.Unmarshal(m.Features, &pipe); err != nil || pipe.Window != 10 || len(pipe.Assets) != 3 || pipe.Features[0].Unit == "" || !pipe.Features[0].Scaled || pipe.Features[0].Clip != 4 || !strings.Contains(pipe.Config, "window: 10") {
			t.Errorf("%s: pipeline %+v, %v", e.Name(), pipe, err)
		}
		for _, in := range m.Inputs {
			if (in.Bounds != nil) != (in.Name == trading.PositionField || in.Name == trading.CashField) || in.Description == "" != (in.Name == agents.MaskInput) {
				t.Errorf("%s: input %+v", e.Name(), in)
			}
		}
		model, err := onnx.Load(p.file())
		if err != nil {
			t.Fatal(err)
		}
		for key, want := range sorted.All(map[string]string{"assets": "AA,BB,CC", "actions": "buy,sell,hold", "scales": "window", "seed": "7", "env_steps": "1000", "metric": "sharpe", "score": "0.5", "parity": "of 288 rows; 864 choices", "features": "open,high,low,close,volume,", "units": "price,price,price,price,volume,"}) {
			if got, _ := model.Meta(bake.MetaPrefix + key); !strings.Contains(got, want) {
				t.Errorf("%s: metadata %s is %q, want %q", e.Name(), key, got, want)
			}
		}

		// Windows in which a stock is not known are recorded.
		r, err := publish.NewRecording(t.Context(), f, model, e, 1, 256)
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		unknown := 0
		for _, x := range b.Taken[slices.Index(b.Inputs, trading.WindowField)].Float32s() {
			if x != x {
				unknown++
			}
		}
		if unknown == 0 {
			t.Errorf("%s: no unknown values", e.Name())
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}

		// The published model decides as the network does on the environment's observations.
		a, err := publish.OpenActor(t.Context(), p.file(), f, envs.Test, e, 1)
		if err != nil {
			t.Fatal(err)
		}
		s, err := e.Compile(pol.Network.Model, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		env, err := f.New(envs.Test, 0)
		if err != nil {
			t.Fatal(err)
		}
		ts := envs.NewTimeStep(env.Spec())
		if err := env.Reset(rng.New(1), ts); err != nil {
			t.Fatal(err)
		}
		steps := 0
		for ; ts.Type != envs.Last; steps++ {
			if err := a.Observe(0, ts); err != nil {
				t.Fatal(err)
			}
			d, err := a.Decide()
			if err != nil {
				t.Fatal(err)
			}
			in := make([]*tensor.Tensor, len(s.Inputs()))
			for i, port := range s.Inputs() {
				switch k := env.Spec().Observation.Index(port.Name); {
				case k >= 0:
					in[i] = ts.Obs[k].Reshape(append([]int{1}, ts.Obs[k].Shape()...)...)
				case port.Name == agents.MaskInput:
					in[i] = ts.Mask.Reshape(1, ts.Mask.Len())
				default:
					in[i] = pol.Params.View(port.Name)
				}
			}
			out := make([]*tensor.Tensor, len(s.Outputs()))
			if err := s.Run(t.Context(), out, in); err != nil {
				t.Fatal(err)
			}
			if string(out[0].Bytes()) != string(d.Actions.Bytes()) {
				t.Errorf("%s: step %d: %v instead of %v", e.Name(), steps, d.Actions.Int64s(), out[0].Int64s())
			}
			if err := env.Step(d.Actions.Reshape(3), ts); err != nil {
				t.Fatal(err)
			}
		}
		if steps < 20 {
			t.Errorf("%s: %d steps", e.Name(), steps)
		}
		for _, close := range []func() error{a.Close, s.Close, env.Close} {
			if err := close(); err != nil {
				t.Error(err)
			}
		}
		other := open(t, document(t, "env: {kind: corridor}"))
		if _, err := publish.OpenActor(t.Context(), p.file(), other, envs.Valid, e, 1); err == nil || !strings.Contains(err.Error(), `scales its input "window" itself`) {
			t.Errorf("a market's agent in a corridor: error %v", err)
		}
	}
}

// TestUndecidedPoliciesArePublished has a policy whose actions are all alike.
func TestUndecidedPoliciesArePublished(t *testing.T) {
	c := bars(t)
	f := open(t, c)
	e := testengines.All(t)[0]
	pol := policy(t, f)
	clear(pol.Params.View("logits.weight").Float32s())
	v := publisher(t, c, f, e).version(t, pol)
	if v.Manifest.Golden != nil {
		t.Errorf("golden values %+v of a policy that rounding decides", v.Manifest.Golden)
	}
}
