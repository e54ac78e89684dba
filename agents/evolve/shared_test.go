package evolve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestSharedReplay: members learn from what the others have recorded, weighed or not, by another
// one's checkpoint too, and a search that was stopped again and again has the same log.
func TestSharedReplay(t *testing.T) {
	longtest.Slow(t)
	logs := map[string]bool{}
	for _, x := range []struct{ agent, replay, diverse string }{{"", "0", ""}, {"", "800", ""}, {", sharing: {}", "800", ""}, {", sharing: {}", "800", "diversity: {threshold: 1, patience: 2}"}} {
		path := written(t, "population: 4", "population: 4\nreplay: {capacity: "+x.replay+"}\n"+x.diverse, "interval_steps: 100", "interval_steps: 40", "agent.ent_coef", "agent.tau", "high: 1.0e-1", "high: 1.0", "generations: 4", "generations: 3")
		base := `
seed: 4
env: {kind: corridor, cells: 5}
agent: {kind: sac, batch_size: 16, buffer_size: 400, learning_starts: 20, hidden: [4]` + x.agent + `}
train: {num_envs: 2, total_env_steps: 1000, threads: 1, log_interval_steps: 20}
eval: {episodes: 2}
`
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), "base.yaml"), []byte(base), 0o600); err != nil {
			t.Fatal(err)
		}
		whole := filepath.Join(t.TempDir(), "whole")
		s, err := evolved(t.Context(), t, path, Options{Dir: whole, Parallel: 2})
		if err != nil {
			t.Fatal(err)
		}
		if logs[text(t, whole)] {
			t.Errorf("%+v makes no difference", x)
		}
		logs[text(t, whole)] = true
		policies := map[int]bool{}
		for _, r := range s.records[2] {
			var res run.Result
			if err := run.ReadJSON(filepath.Join(whole, filepath.FromSlash(r.Dir), run.IntervalFile), &res); err != nil {
				t.Fatal(err)
			}
			share, own := 0.0, 0.0
			for tag, part := range sorted.All(res.Train) {
				if of := (0); strings.HasSuffix(tag, "/share") {
					if _, err := fmt.Sscanf(tag, "replay/policy_%d/share", &of); err != nil {
						t.Fatal(tag, err)
					}
					share, policies[of] = share+part, true
					if of%4 == r.Member {
						own += part
					}
				}
			}
			if x.replay != "0" && (share < 0.999 || own >= 0.9) {
				t.Errorf("%+v: member %d draws %v", x, r.Member, res.Train)
			}
		}
		want := 0
		switch {
		case x.diverse != "":
			want = 5 // One has restarted, and is another policy since.
		case x.replay != "0":
			want = 4
		}
		if len(policies) != want {
			t.Errorf("%+v: %d policies are drawn from, expected %d", x, len(policies), want)
		}
		parts, stops := filepath.Join(t.TempDir(), "parts"), 0
		o := Options{Dir: parts}
		for err = context.Canceled; errors.Is(err, context.Canceled) && stops < 20; stops++ {
			ctx, cancel := context.WithCancel(t.Context())
			var taken atomic.Int64
			o.Steps = func(n int64) {
				// A generation takes 160.
				if taken.Add(n) >= int64(170+40*stops) {
					cancel()
				}
			}
			_, err = evolved(ctx, t, path, o)
			cancel()
			path, o.Dir, o.Resume = "", "", parts
		}
		if got, want := text(t, parts), text(t, whole); err != nil || got != want || stops < 3 {
			t.Errorf("%+v: %v after %d stops:\n%s\nexpected\n%s", x, err, stops, got, want)
		}
	}
	if len(logs) != 4 {
		t.Errorf("%d searches", len(logs))
	}
}

// TestSharedReplayCombines: members whose environments are normalised share a replay, with action
// noise beside the weights of others, or V-trace, and a search that was stopped has the same log.
func TestSharedReplayCombines(t *testing.T) {
	longtest.Slow(t)
	logs := map[string]bool{}
	for _, correction := range []string{"sharing: {}", "vtrace: {length: 4}"} {
		path := written(t, "population: 4", "population: 4\nreplay: {capacity: 800}", "interval_steps: 100", "interval_steps: 40", "agent.ent_coef", "agent.tau", "high: 1.0e-1", "high: 1.0", "generations: 4", "generations: 2")
		base := `
seed: 4
env: {kind: pendulum}
wrappers: {normalize: {obs: true, reward: true}}
agent: {kind: sac, batch_size: 16, buffer_size: 400, learning_starts: 20, hidden: [4], ` + correction + `, action_noise: {sigma: 0.1}}
train: {num_envs: 2, total_env_steps: 1000, threads: 1, log_interval_steps: 20}
eval: {episodes: 2}
`
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), "base.yaml"), []byte(base), 0o600); err != nil {
			t.Fatal(err)
		}
		whole, parts := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "parts")
		if _, err := evolved(t.Context(), t, path, Options{Dir: whole, Parallel: 2}); err != nil {
			t.Fatalf("%s: %v", correction, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var taken atomic.Int64
		_, err := evolved(ctx, t, path, Options{Dir: parts, Steps: func(n int64) {
			if taken.Add(n) >= 100 {
				cancel()
			}
		}})
		if cancel(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", correction, err)
		}
		if _, err := evolved(t.Context(), t, "", Options{Resume: parts}); err != nil || text(t, parts) != text(t, whole) || logs[text(t, whole)] {
			t.Errorf("%s: %v\n%s\nexpected\n%s", correction, err, text(t, parts), text(t, whole))
		}
		logs[text(t, whole)] = true
	}
}

// TestSharedReplayRefuses: members that record nothing which others could learn from.
func TestSharedReplayRefuses(t *testing.T) {
	small := written(t, "population: 4", "population: 4\nreplay: {capacity: 20}")
	if _, err := Open(t.Context(), small, Options{Kinds: kinds.All()}); err == nil || !strings.Contains(err.Error(), "replay.capacity: is 20, expected at least") {
		t.Errorf("a small replay: %v", err)
	}
	path := written(t, "population: 4", "population: 4\nreplay: {capacity: 800}")
	for _, x := range []struct{ path, says string }{{path, "the 4 members share a replay in this process (replay.capacity) and train in it, 2 at once; processes share a server's table"}, {written(t), ""}} {
		s, err := Open(t.Context(), x.path, Options{Kinds: kinds.All(), Parallel: 2})
		if err != nil {
			continue // what the documents of this test cannot share is said below
		}
		if got := s.Together(); !strings.HasPrefix(got, x.says) || (got == "") != (x.says == "") {
			t.Errorf("%q, expected %q", got, x.says)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := evolved(t.Context(), t, path, Options{Dir: filepath.Join(t.TempDir(), "search")}); err == nil || !strings.Contains(err.Error(), "replay") {
		t.Error(err)
	}
}
