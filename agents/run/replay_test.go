package run_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

const sharing = `
env: {kind: corridor, cells: 5}
agent: {kind: sac, batch_size: 16, buffer_size: 400, learning_starts: 20, hidden: [4], sharing: {}}
train: {num_envs: 2, total_env_steps: 240, log_interval_steps: 40, threads: 1, validation: {every_steps: 120}}
eval: {episodes: 2}
publish: {when: never}
`

// experts are runs that share a replay: members 1, 2 and 3, by their seeds.
type experts struct {
	t     *testing.T
	dir   string
	store *replay.Shared
	o     run.Options
}

// newExperts makes experts in a directory; those of another process begin with the store that was
// saved.
func newExperts(t *testing.T, dir, saved string) *experts {
	x := &experts{t: t, dir: dir}
	e := portable.New()
	t.Cleanup(func() { e.Close() })
	x.o = run.Options{Engine: e, Replay: func(r *run.Run) (agents.Replay, error) {
		if x.store == nil {
			spec, err := offline.SpecOf(r.Plan().Factory(), envs.Train, 0)
			if err != nil {
				return nil, err
			}
			l, err := offpolicy.LayoutOf(spec, true, nil)
			if err != nil {
				return nil, err
			}
			if x.store, err = replay.NewShared(l, replay.SharedConfig{Capacity: 800, ChunkRows: 16, Name: "experts"}); err != nil {
				return nil, err
			}
			t.Cleanup(func() { x.store.Close() })
			if saved != "" {
				c, err := checkpoint.Open(saved)
				if err != nil {
					return nil, err
				}
				defer c.Close()
				if err := c.Load(x.store); err != nil {
					return nil, err
				}
			}
		}
		return x.store.Member(fmt.Sprint("expert ", r.Seed()), int32(r.Seed()), replay.SamplerConfig{}), nil
	}}
	return x
}

func (x *experts) config(sets ...string) experiment.Config {
	doc, err := configs.Parse("sharing.yaml", []byte(sharing))
	if err == nil {
		err = doc.Set(sets...)
	}
	c := experiment.Defaults()
	if err == nil {
		err = doc.Decode(&c)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	return c
}

// turn trains an interval of a member, after its turn before, and returns its checkpoint.
func (x *experts) turn(member uint64, turn int) (run.Result, string, error) {
	dir := func(turn int) string { return filepath.Join(x.dir, fmt.Sprintf("expert-%d-%d", member, turn)) }
	i := run.Job{Config: text(x.t, x.config(fmt.Sprint("seed=", member))), Dir: dir(turn), EnvSteps: 80}
	if turn > 0 {
		list, err := checkpoint.List(filepath.Join(dir(turn-1), run.CheckpointDir))
		if err != nil {
			return run.Result{}, "", err
		}
		i.Checkpoint = list[len(list)-1].Path
	}
	r, err := i.Train(x.t.Context(), kinds.All(), x.o)
	return r, filepath.Join(i.Dir, r.Checkpoint), err
}

func (x *experts) save() string {
	s, err := checkpoint.OpenStore(x.t.TempDir(), checkpoint.Options{})
	if err != nil {
		x.t.Fatal(err)
	}
	defer s.Close()
	path, err := s.Save(checkpoint.Meta{Kind: "replay"}, x.store)
	if err != nil {
		x.t.Fatal(err)
	}
	return path
}

// TestSharedReplay: members that share a replay and are trained one after another go on from the
// store as it was saved between their turns, in another process and in whichever is asked for
// first, with the bits of those that never stopped.
func TestSharedReplay(t *testing.T) {
	dir := t.TempDir()
	x, before := newExperts(t, dir, ""), ""
	want := map[string]checkpoint.Manifest{}
	for turn := range 3 {
		for _, member := range []uint64{3, 1, 2} {
			if turn == 2 && member == 3 {
				before = x.save()
			}
			r, path, err := x.turn(member, turn)
			if err != nil {
				t.Fatal(err)
			}
			if turn == 2 {
				want[fmt.Sprint(member)] = manifest(t, path)
				for _, tag := range []string{"replay/ess", "replay/policy_1/share", "replay/policy_2/rho", "replay/policy_3/age"} {
					if _, ok := r.Train[tag]; !ok {
						t.Errorf("no %s in %v", tag, r.Train)
					}
				}
			}
		}
	}
	if st := x.store.Stats(); st.Recorded != 3*240 || len(st.Policies) != 3 {
		t.Errorf("%+v", st)
	}
	// The turns of the last three, by another process.
	other := t.TempDir()
	again := newExperts(t, other, before)
	for _, member := range []uint64{3, 1, 2} {
		i := run.Job{Config: text(x.t, x.config(fmt.Sprint("seed=", member))), Dir: filepath.Join(other, fmt.Sprint(member)), EnvSteps: 80}
		list, err := checkpoint.List(filepath.Join(dir, fmt.Sprintf("expert-%d-1", member), run.CheckpointDir))
		if err != nil {
			t.Fatal(err)
		}
		i.Checkpoint = list[len(list)-1].Path
		r, err := i.Train(t.Context(), kinds.All(), again.o)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := manifest(t, filepath.Join(i.Dir, r.Checkpoint)), want[fmt.Sprint(member)]; !reflect.DeepEqual(got.Files, want.Files) || !reflect.DeepEqual(got.Sections, want.Sections) {
			t.Errorf("expert %d: %s, expected %s", member, got.Sections, want.Sections)
		}
	}
	if len(want) != 3 {
		t.Errorf("%d members", len(want))
	}
	// A checkpoint that is ahead of the store.
	_, _, err := newExperts(t, dir, "").turn(1, 3)
	if err == nil || !strings.Contains(err.Error(), `0 transitions were ever recorded in the store "experts", and 640 when the checkpoint was saved`) {
		t.Errorf("an empty store: %v", err)
	}
}
