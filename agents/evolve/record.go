package evolve

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// Record is one generation of a member, a line of the log; the JSON keys are stable.
type Record struct {
	Generation int `json:"generation"`
	Member     int `json:"member"`
	// Action is begin, keep, clone, migrate or restart: what it has taken, see [Take].
	Action string `json:"action"`
	// Parent is the member of the generation before whose checkpoint it went on from, and HyperFrom
	// the one whose hyper-parameters became Values; -1 for none.
	Parent    int `json:"parent"`
	HyperFrom int `json:"hyper_from"`
	// Values are the hyper-parameters that it was trained with.
	Values tune.Values `json:"values"`
	Seed   uint64      `json:"seed"`
	// Skill is the skill that the member is evaluated and published with; absent without skills.
	Skill *int `json:"skill,omitempty"`
	// EnvSteps are those of its run, which its ancestors took before it.
	EnvSteps int64 `json:"env_steps"`
	// Score is the metric on the validation split at the end; null where there is none.
	Score performance.Number `json:"score"`
	// Distance is how far its policy lies from those of the others, by [Distance] on the probe
	// observations, in the mean; null where it was not measured.
	Distance performance.Number `json:"distance"`
	// Dir is the run directory whose newest checkpoint is its state, relative to the directory of
	// the search, empty for none; SHA256 identifies that state, whenever it was saved. The
	// checkpoint is removed once nobody can go on from it.
	Dir    string `json:"dir"`
	SHA256 string `json:"sha256"`
	// RolledBack, unless empty, says how it has diverged: hyper-parameters, score and state are
	// those of its parent.
	RolledBack string `json:"rolled_back,omitempty"`
}

// load reads the log in a directory, of generations of n members. A last one that is not whole is
// left out.
func load(dir string, n int) (log *study.Log[Record], list [][]Record, err error) {
	path := filepath.Join(dir, LogFile)
	if log, err = study.OpenLog[Record](path); err != nil {
		return nil, nil, err
	}
	for i, r := range log.Records() {
		if r.Generation != i/n || r.Member != i%n {
			return nil, nil, fmt.Errorf("%s:%d: it is of generation %d, member %d; expected %d, %d", path, i+1, r.Generation, r.Member, i/n, i%n)
		}
	}
	log.Keep(len(log.Records()) / n * n)
	return log, slices.Collect(slices.Chunk(log.Records(), n)), nil
}
