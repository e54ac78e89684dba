package logs

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// The names in a tournament's folder.
const (
	paramsFile = "params.json"
	worldsDir  = "logs"
	configsDir = "configs"
)

// Tournament writes the folder of a tournament. [Tournament.Follow] may be called by several
// goroutines.
type Tournament struct {
	dir  string
	spec league.Spec
	more Extras
	// digest tells apart the worlds of tournaments that have something in common.
	digest string
}

// params is params.json.
type params struct {
	Compact          bool       `json:"compact"`
	CompetitorParams []struct{} `json:"competitor_params"`
	Competitors      []string   `json:"competitors"`
	Fast             bool       `json:"fast"`
	LogNegotiations  bool       `json:"log_negotiations"`
	LogUfuns         bool       `json:"log_ufuns"`
	PerCompetitor    int        `json:"n_agents_per_competitor"`
	PerWorld         int        `json:"n_competitors_per_world"`
	Configs          int        `json:"n_configs"`
	Levels           []int      `json:"n_processes"`
	Runs             int        `json:"n_runs_per_world"`
	Days             [2]int     `json:"n_steps"`
	Worlds           int        `json:"n_worlds"`
	Name             string     `json:"name"`
	NoLogs           bool       `json:"no_logs"`
	StdWorld         bool       `json:"std_world"`
	Path             string     `json:"tournament_path"`
	// Tracked says that there are logs of trackers.
	Tracked bool `json:"onnxrl_tracked,omitempty"`
	// Spec is what has been played, by which the tournament can be played again.
	Spec league.Spec `json:"onnxrl"`
}

// OpenTournament begins the folder of a tournament, or goes on with it. A folder that there is must
// be one of the same tournament, with the same extras.
func OpenTournament(dir string, spec league.Spec, more Extras) (*Tournament, error) {
	t := &Tournament{dir: filepath.Clean(dir), spec: spec, more: more}
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	t.digest = fmt.Sprintf("%x", sum[:3])
	p := params{
		Competitors: []string{}, CompetitorParams: make([]struct{}, len(spec.Competitors)), LogNegotiations: more.Negotiations, LogUfuns: more.Utilities, Tracked: more.Tracked, PerCompetitor: 1, PerWorld: spec.PerWorld, Configs: spec.Configs, Levels: spec.Processes, Runs: spec.Runs, Days: spec.Days,
		Worlds: spec.Worlds(), Name: filepath.Base(t.dir), StdWorld: true, Path: ".", Spec: spec,
	}
	if p.PerWorld == 0 {
		p.PerWorld = len(spec.Competitors)
	}
	for _, name := range spec.Competitors {
		kind, err := spec.Kind(name)
		if err != nil {
			return nil, err
		}
		p.Competitors = append(p.Competitors, strings.TrimPrefix(typePrefix, "scml.oneshot.sysagents.DefaultOneShotAdapter:")+kind.Type)
	}
	want, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, err
	}
	path := filepath.Join(t.dir, paramsFile)
	has, err := os.ReadFile(path)
	switch list, e := os.ReadDir(t.dir); {
	case err == nil && bytes.Equal(bytes.TrimSpace(has), want):
		return t, nil
	case err == nil:
		return nil, fmt.Errorf("%s is of another tournament: name another folder, or delete it", path)
	case e == nil && len(list) > 0:
		return nil, fmt.Errorf("%s is not empty, and is of no tournament: there is no %s in it", t.dir, paramsFile)
	case e != nil && !errors.Is(e, os.ErrNotExist):
		return nil, e
	}
	folders := []string{worldsDir, configsDir}
	if more.Tracked {
		folders = append(folders, trackerDir)
	}
	for _, sub := range folders {
		if err := os.MkdirAll(filepath.Join(t.dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	return t, writeJSON(t.dir, paramsFile, p)
}

// name is that of a game's world.
func (t *Tournament) name(g *league.Game) string {
	var codes []string
	for _, place := range g.Places {
		codes = append(codes, world.TypeCode(g.Table.Config().Factories[place].Type))
	}
	return fmt.Sprintf("%04d_%s_%s.%02d", g.Config, t.digest, strings.Join(codes, "-"), g.World)
}

// Follow begins the folder of a world; it is a league.Spec's Follow.
func (t *Tournament) Follow(g *league.Game) (league.Follower, error) {
	name := t.name(g)
	if err := writeJSON(filepath.Join(t.dir, configsDir), fmt.Sprintf("%06d.json", g.World), configOf(name, g)); err != nil {
		return nil, err
	}
	dir := filepath.Join(t.dir, worldsDir, name)
	// A world is played again where its scores were not kept any more.
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	return Create(dir, g.Table.World, Options{World: name, Competitors: g.Places, Tournament: filepath.Base(t.dir), Number: g.World, Trackers: filepath.Join(t.dir, trackerDir), Extras: t.more})
}
