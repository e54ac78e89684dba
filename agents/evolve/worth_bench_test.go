package evolve

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// BenchmarkWorth asks what members that learn of each other are worth: the shipped search
// acrobot_evolve by MF-PBT and by PBT against random search, with as many env steps. Each search's
// member of the best validation score after the last generation acts greedily through 100 episodes
// that it was neither trained nor ranked on. Seeds 1 to 5 are paired: all three begin with the same
// members, and are judged on the same episodes. A strategy is worth something where the interval of
// 95 % (t, 5 seeds) of the difference to random search, in the mean return, lies above 0.
func BenchmarkWorth(b *testing.B) {
	const seeds, episodes = 5, 100
	var random []float64
	for _, strategy := range []string{"random_search", "pbt", "mf_pbt"} {
		b.Run(strategy, func(b *testing.B) {
			var returns []float64
			for b.Loop() {
				returns = nil
				for seed := range seeds {
					returns = append(returns, selected(b, strategy, seed+1, episodes))
				}
			}
			b.Logf("returns %.1f", returns)
			mean, _ := spread(returns)
			b.ReportMetric(mean, "return")
			if strategy == "random_search" {
				random = returns
				return
			}
			for i := range returns {
				returns[i] -= random[i]
			}
			mean, half := spread(returns)
			b.ReportMetric(mean-half, "low")
			b.ReportMetric(mean+half, "high")
		})
	}
}

// selected is the mean return of the best member of a search on episodes of the test split.
func selected(b *testing.B, strategy string, seed, episodes int) float64 {
	doc, err := experiment.Document("acrobot_evolve")
	if err == nil && strategy != "mf_pbt" {
		err = doc.Set("strategy={kind: " + strategy + "}")
	}
	if err != nil {
		b.Fatal(err)
	}
	e := testengines.Fastest(b)
	sum := searched(b, e, doc, Options{Sets: []string{fmt.Sprint("seed=", seed)}})
	v, err := run.NewEvaluation(kinds.All(), sum.Members[0].Path, run.EvaluationOptions{
		Split: envs.Test, Sets: []string{fmt.Sprint("seed=", 1000+seed), fmt.Sprint("eval.episodes=", episodes)},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer v.Close()
	if err := v.Open(b.Context(), e); err != nil {
		b.Fatal(err)
	}
	list, err := v.Episodes(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return list[0].Return
}

// searched carries out the search of a document.
func searched(b *testing.B, e engine.Compiler, doc *configs.Document, o Options) Summary {
	o.Kinds, o.Dir, o.Run.Engine = kinds.All(), filepath.Join(b.TempDir(), "search"), e
	o.Kinds.Document = func(string) (*configs.Document, error) { return doc, nil }
	s, err := Open(b.Context(), "search", o)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	if _, err = s.Begin(); err == nil {
		err = s.Run(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	return s.Summarize()
}

// spread is the mean of five numbers and half of its interval of 95 %, of Student's t with 4
// degrees of freedom.
func spread(x []float64) (mean, half float64) {
	n, square := float64(len(x)), 0.0
	for _, v := range x {
		mean += v / n
	}
	for _, v := range x {
		square += (v - mean) * (v - mean)
	}
	return mean, 2.776 * math.Sqrt(square/(n-1)/n)
}

// BenchmarkMembers has the cost of a member in populations of 4, 16 and 64 that train for two
// generations: milliseconds for each of them, and the process's resident memory where it is most at
// the end of one.
func BenchmarkMembers(b *testing.B) {
	for _, members := range []int{4, 16, 64} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			e := testengines.Fastest(b)
			doc, err := experiment.Document("cartpole_evolve")
			if err == nil {
				err = doc.Set("generations=2", fmt.Sprint("population=", members))
			}
			if err != nil {
				b.Fatal(err)
			}
			var mu sync.Mutex
			most, o := 0.0, Options{}
			o.Run.Hooks.End = func(*run.Run, train.Result) error {
				mu.Lock()
				defer mu.Unlock()
				most = max(most, resident(b))
				return nil
			}
			debug.FreeOSMemory()
			for b.Loop() {
				searched(b, e, doc, o)
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*2*members), "ms/generation")
			b.ReportMetric(most, "MB")
		})
	}
}

// resident is the process's resident memory in MB.
func resident(b *testing.B) float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	var kb float64
	if _, err := fmt.Sscan(after, &kb); err != nil {
		b.Fatal(err)
	}
	return kb / 1000
}
