package replay

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// published publishes what a store holds from a checkpoint of it.
func published(t *testing.T, s checkpoint.Stater, to *artifact.Store, m artifact.Manifest, aliases ...string) (artifact.Version, error) {
	t.Helper()
	at, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, at)
	path, err := at.Save(checkpoint.Meta{Kind: "any", Step: 3, Info: map[string]string{"host": t.Name()}}, s)
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, c)
	return Publish(t.Context(), c, to, m, aliases...)
}

// inAgent saves a replay where the checkpoint of a run has it.
type inAgent struct{ checkpoint.Stater }

func (a inAgent) SaveState(w *checkpoint.Writer) error {
	w.PutJSON("train", 1)
	return a.Stater.SaveState(w.Scope("agent").Scope("replay"))
}

// TestPublish: what a store holds is a version with parents, which another store of its layout is
// restored from, through a copy elsewhere; what does not fit, or is damaged, is refused.
func TestPublish(t *testing.T) {
	config := SharedConfig{Capacity: 250, ChunkRows: 16}
	s, worlds, l := sharedWorlds(t, config, 2, 2)
	open := func() *artifact.Store {
		x, err := artifact.Open(t.TempDir(), artifact.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		closing(t, x)
		return x
	}
	here, there := open(), open()
	rounds := func(n int) {
		for range n {
			for _, w := range worlds {
				w.round(t)
			}
		}
	}
	publish := func(parents ...string) artifact.Version {
		v, err := published(t, s, here, artifact.Manifest{Name: "experts/replay", Parents: parents, Info: map[string]string{"run": "first"}}, "kept")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	rounds(30)
	one := publish()
	if again := publish(); again.Digest != one.Digest {
		t.Errorf("the same transitions are %s and %s", one, again)
	}
	rounds(20)
	two := publish(one.Digest)
	if m := two.Manifest; m.Kind != ArtifactKind || m.EnvStep != 200 || m.Info["transitions/policy_1"] == "" || m.Info["run"] != "first" || two.Digest == one.Digest {
		t.Errorf("%+v", m)
	}
	copied, err := there.CopyFrom(t.Context(), here, "experts/replay:kept", artifact.PullOptions{Lineage: true})
	if err != nil {
		t.Fatal(err)
	}
	if line, err := there.Lineage(copied.Digest); err != nil || len(line) != 2 || line[1].Digest != one.Digest {
		t.Errorf("%+v, %v", line, err)
	}
	into := func(c SharedConfig, v artifact.Version) (*Shared, error) {
		x, err := NewShared(l, c)
		if err != nil {
			t.Fatal(err)
		}
		closing(t, x)
		return x, x.Restore(t.Context(), v)
	}
	r, err := into(config, copied)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := s.Stats(), r.Stats(); a.Transitions != b.Transitions || a.Recorded != b.Recorded || b.Policies[1] != a.Policies[1] {
		t.Errorf("%+v, expected %+v", b, a)
	}
	b, d := sharedBatch(s, 64), sharedBatch(r, 64)
	for _, x := range []struct {
		s *Shared
		b *Batch
	}{{s, b}, {r, d}} {
		if err := sampler(t, x.s, SamplerConfig{Gamma: 0.9}).Sample(rng.New(3).Stream(), x.b); err != nil {
			t.Fatal(err)
		}
	}
	for i := range b.Reward {
		if b.Time[i] != d.Time[i] || b.Policy[i] != d.Policy[i] || b.Reward[i] != d.Reward[i] || b.LogProb[i] != d.LogProb[i] {
			t.Fatalf("sample %d differs", i)
		}
	}
	if missing := r.Missing(); len(missing) != 2 {
		t.Errorf("writers %q", missing)
	}
	other := config
	other.Capacity = 500
	if _, err := into(other, copied); err == nil || !strings.Contains(err.Error(), "restore experts/replay@sha256:") || !strings.Contains(err.Error(), "chunks") {
		t.Errorf("another capacity: %v", err)
	}
	policy := copied
	policy.Manifest.Kind = "agent"
	if _, err := into(config, policy); err == nil || !strings.Contains(err.Error(), `its kind is "agent", expected "replay"`) {
		t.Errorf("another kind: %v", err)
	}
	for _, f := range copied.Files {
		path := filepath.Join(there.Dir(), "blobs", "sha256", strings.TrimPrefix(f.Digest, "sha256:"))
		text, err := os.ReadFile(path)
		if err == nil {
			text[len(text)/2] ^= 1
			err = os.Chmod(path, 0o666)
		}
		if err == nil {
			err = os.WriteFile(path, text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := into(config, copied); err == nil || !strings.Contains(err.Error(), "restore experts/replay@") {
		t.Errorf("damaged: %v", err)
	}
}

// TestPublishOwn: a learner's own replay is the same version by itself and out of a run's checkpoint,
// and its transitions are all there; one that is elsewhere, and none, are refused.
func TestPublishOwn(t *testing.T) {
	r, w, _ := prioritised(t, Priorities{Alpha: 0.6, Eps: 1e-3}, 2)
	for range 70 {
		w.round(t)
	}
	to, err := artifact.Open(t.TempDir(), artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, to)
	v, err := published(t, r, to, artifact.Manifest{Name: "own"})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := published(t, inAgent{r}, to, artifact.Manifest{Name: "own"}); err != nil || again.Digest != v.Digest {
		t.Errorf("in a run it is %s, %v, by itself %s", again, err, v)
	}
	if m := v.Manifest; m.EnvStep != 140 || m.Info["transitions"] != strconv.Itoa(r.Len()) || m.Info["transitions/policy_0"] != m.Info["transitions"] || m.Kind != ArtifactKind {
		t.Errorf("%+v, expected %d transitions", m, r.Len())
	}
	path, err := Extract(t.Context(), v, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	closing(t, c)
	s, err := OpenSnapshot(c.Reader(), w.v.Spec())
	if err != nil {
		t.Fatal(err)
	}
	closing(t, s)
	if n := s.compare(t, []*world{w}); n != r.Len() {
		t.Errorf("%d transitions, expected %d", n, r.Len())
	}
	for _, refused := range []struct {
		name, says string
		put        func(w *checkpoint.Writer)
	}{
		{"elsewhere", "a-table", func(w *checkpoint.Writer) { w.PutJSON("recorder", recorded{Store: "a-table"}) }},
		{"none", "the checkpoint has no replay", func(w *checkpoint.Writer) { w.PutJSON("train", 1) }},
	} {
		if _, err := published(t, saves(refused.put), to, artifact.Manifest{Name: "x"}); err == nil || !strings.Contains(err.Error(), refused.says) {
			t.Errorf("%s: %v", refused.name, err)
		}
	}
}

// saves is a state that is what a function puts.
type saves func(w *checkpoint.Writer)

func (s saves) SaveState(w *checkpoint.Writer) error { s(w); return nil }

func (saves) LoadState(*checkpoint.Reader) error { return nil }
