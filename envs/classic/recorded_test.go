package classic

import (
	"compress/gzip"
	"encoding/json"
	"flag"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// recording names what TestRecorded reads; cmd/peers/gymnasium_transitions.py writes longer ones.
var recording = flag.String("recording", "testdata/gymnasium.json.gz", "recorded transitions to compare with")

// recorded is the form of a recording.
type recorded struct {
	Gymnasium string `json:"gymnasium"`
	Tasks     []struct {
		ID, Kind    string
		Transitions struct {
			State, Next, Obs [][]float64
			Action, Reward   []float64
			Terminated       []bool
			Tags             [][]string
		}
		Episodes []struct {
			Policy                string
			Start, Action, Reward []float64
			Obs                   [][]float64
			// Resume has states by the number of steps before them.
			Resume                map[int][]float64
			Terminated, Truncated bool
		}
	}
}

// tolerance is the largest difference from Gymnasium, relative to numbers above 1.
const tolerance = 1e-6

// worst is the largest difference that was seen.
type worst float64

func (w *worst) compare(got, want float64) bool {
	d := math.Abs(got-want) / max(1, math.Abs(want))
	if *w = worst(max(float64(*w), d)); math.IsNaN(d) {
		return false
	}
	return d <= tolerance
}

func (w *worst) compareAll(got, want []float64) bool {
	return slices.EqualFunc(got, want, w.compare)
}

// compareObs compares float32 numbers, which are recorded in as few digits as they need.
func (w *worst) compareObs(got, want []float64) bool {
	return slices.EqualFunc(got, want, func(got, want float64) bool { return w.compare(got, float64(float32(want))) })
}

// made returns the environment of a kind with its defaults.
func made(t *testing.T, kind string) *Env {
	t.Helper()
	i := slices.IndexFunc(Kinds(), func(k envs.Kind) bool { return k.Name == kind })
	if i < 0 {
		t.Fatalf("there is no kind %q", kind)
	}
	f, err := Kinds()[i].Open(t.Context(), configs.Section{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := f.New(envs.Test, 0)
	if err != nil {
		t.Fatal(err)
	}
	return e.(*Env)
}

// setAction writes a number into an action of a discrete space or of a box with one element.
func setAction(a *tensor.Tensor, v float64) {
	if a.DType() == tensor.Int64 {
		a.Int64s()[0] = int64(v)
	} else {
		a.Float32s()[0] = float32(v)
	}
}

// observed returns the observation.
func observed(ts *envs.TimeStep) []float64 {
	var o []float64
	for _, v := range ts.Obs[0].Float32s() {
		o = append(o, float64(v))
	}
	return o
}

// special lists how many transitions of each special case every recording must have.
var special = map[string]map[string]int{
	"cartpole":               {"position": 10, "angle": 20},
	"pendulum":               {"speed": 20, "wrap": 20, "torque": 20},
	"mountaincar":            {"wall": 20, "speed": 20, "goal": 10, "right": 10},
	"mountaincar_continuous": {"wall": 20, "speed": 20, "goal": 10, "right": 10},
	"acrobot":                {"wrap1": 20, "wrap2": 20, "speed1": 20, "speed2": 20, "goal": 20},
}

func TestRecorded(t *testing.T) {
	f, err := os.Open(*recording)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var r recorded
	if err := json.NewDecoder(z).Decode(&r); err != nil {
		t.Fatal(err)
	}
	if len(r.Tasks) != len(special) {
		t.Fatalf("%d environments are recorded, expected %d", len(r.Tasks), len(special))
	}
	for _, task := range r.Tasks {
		t.Run(task.Kind, func(t *testing.T) {
			e := made(t, task.Kind)
			ts := envs.NewTimeStep(e.Spec())
			action := tensor.New(e.spec.Action.DType(), e.spec.Action.Shape()...)
			var w worst
			tags := map[string]int{}
			x := task.Transitions
			for i, state := range x.State {
				copy(e.sys.state(), state)
				setAction(action, x.Action[i])
				reward, terminated := e.sys.step(action, &e.random)
				e.sys.observe(ts)
				if !w.compareAll(e.sys.state(), x.Next[i]) || !w.compareObs(observed(ts), x.Obs[i]) || !w.compare(reward, x.Reward[i]) || terminated != x.Terminated[i] {
					t.Errorf("from %v by %g: state %v, observation %v, reward %g, terminated %t, expected %v, %v, %g, %t", state, x.Action[i], e.sys.state(), observed(ts), reward, terminated, x.Next[i], x.Obs[i], x.Reward[i], x.Terminated[i])
				}
				for _, tag := range x.Tags[i] {
					tags[tag]++
				}
			}
			if len(x.State) < 100 {
				t.Errorf("only %d transitions", len(x.State))
			}
			for tag, n := range sorted.All(special[task.Kind]) {
				if tags[tag] < n {
					t.Errorf("%d transitions of %q, expected at least %d", tags[tag], tag, n)
				}
			}
			t.Logf("%s of Gymnasium %s: %d transitions %v, largest difference %.2g", task.ID, r.Gymnasium, len(x.State), tags, float64(w))
			for _, p := range task.Episodes {
				var w worst
				if err := e.Reset(rng.New(1), ts); err != nil {
					t.Fatal(err)
				}
				copy(e.sys.state(), p.Start)
				for i, a := range p.Action {
					if i > 0 && ts.Type == envs.Last {
						t.Fatalf("%s: the episode ends after %d steps, expected %d", p.Policy, i, len(p.Action))
					}
					// Upright poles fall by themselves: a difference in the last bit, as between
					// two libraries' sines, grows by e every 12 steps, so that no episode of 500
					// steps could be followed from its start.
					if state := p.Resume[i]; state != nil {
						copy(e.sys.state(), state)
					}
					setAction(action, a)
					if err := e.Step(action, ts); err != nil {
						t.Fatal(err)
					}
					if !w.compareObs(observed(ts), p.Obs[i]) || !w.compare(ts.Reward, p.Reward[i]) {
						t.Fatalf("%s: after %d steps: observation %v, reward %g, expected %v and %g", p.Policy, i+1, observed(ts), ts.Reward, p.Obs[i], p.Reward[i])
					}
				}
				if ts.Terminated() != p.Terminated || ts.Truncated() != (p.Truncated && !p.Terminated) {
					t.Errorf("%s: terminated %t and truncated %t, expected %t and %t", p.Policy, ts.Terminated(), ts.Truncated(), p.Terminated, p.Truncated)
				}
				t.Logf("%s: episode of %d steps, terminated %t, largest difference %.2g", p.Policy, len(p.Action), p.Terminated, float64(w))
			}
			if want := 2; task.Kind != "acrobot" && len(task.Episodes) != want {
				t.Errorf("%d episodes, expected %d", len(task.Episodes), want)
			}
		})
	}
}
