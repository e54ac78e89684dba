package app

import (
	"path/filepath"
	"runtime"
	"runtime/debug"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/configs"
)

// lineage is how a run came to be; the JSON keys are stable.
type lineage struct {
	Command string `json:"command"`
	// Name is what artefacts are called.
	Name  string   `json:"name"`
	Seeds []uint64 `json:"seeds"`
	// ConfigSHA256 is of the effective document, Config its text.
	ConfigSHA256 string            `json:"config_sha256"`
	Sources      map[string]string `json:"sources"`
	Init         *initRecord       `json:"init,omitempty"`
	// Continues is the checkpoint of another run that this one goes on from.
	Continues string         `json:"continues,omitempty"`
	Engine    string         `json:"engine"`
	Threads   int            `json:"threads"`
	Platform  string         `json:"platform"`
	Program   programVersion `json:"program"`
	Config    string         `json:"config"`
}

// programVersion says which code ran. Revision is empty in a build without version control.
type programVersion struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	// Modified says that the sources were not those of the revision.
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

func thisProgram() programVersion {
	v := programVersion{Version: version(), Go: runtime.Version()}
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, s := range b.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Revision = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	return v
}

// lineage returns that of a document of the plan.
func (p *trainPlan) lineage(cfg experiment.Config) (lineage, error) {
	text, err := configs.Marshal(cfg)
	if err != nil {
		return lineage{}, err
	}
	digest, err := configs.Digest(cfg)
	if err != nil {
		return lineage{}, err
	}
	l := lineage{
		Command: "train", Name: p.name, Seeds: cfg.Seeds, ConfigSHA256: digest, Sources: p.sources, Engine: p.engine.Name(), Threads: cfg.Train.Threads,
		Platform: platform(), Program: thisProgram(), Config: string(text),
	}
	if len(l.Seeds) == 0 {
		l.Seeds = []uint64{cfg.Seed}
	}
	if p.init != nil {
		l.Init = p.init.record()
	}
	return l, nil
}

// describe writes the lineage of a new run, or of a group of them; the configuration, whose
// presence makes it a run, is to follow.
func (p *trainPlan) describe(dir string, cfg experiment.Config) error {
	l, err := p.lineage(cfg)
	if err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, lineageFile), l)
}

// redescribe updates the configuration of a resumed run to what has changed, which trainChanges has
// allowed. Everything else stays what it was when the run began.
func redescribe(dir string, cfg experiment.Config) error {
	var l lineage
	if err := readJSON(filepath.Join(dir, lineageFile), &l); err != nil {
		return err
	}
	text, err := configs.Marshal(cfg)
	if err != nil || string(text) == l.Config {
		return err
	}
	l.Config = string(text)
	if l.ConfigSHA256, err = configs.Digest(cfg); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(dir, lineageFile), l); err != nil {
		return err
	}
	return writeConfig(dir, cfg)
}
