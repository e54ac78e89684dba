package run

import (
	"cmp"
	"path/filepath"
	"runtime"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/buildinfo"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Lineage is how a run came to be; the JSON keys are stable.
type Lineage struct {
	Command string `json:"command"`
	// Name is what artefacts are called.
	Name  string   `json:"name"`
	Seeds []uint64 `json:"seeds"`
	// ConfigSHA256 is of the effective document, see experiment.Digest, Config its text.
	ConfigSHA256 string            `json:"config_sha256"`
	Sources      map[string]string `json:"sources"`
	// Parameters counts those of an agent with adapters.
	Parameters *network.Counts `json:"parameters,omitempty"`
	Init       *Init           `json:"init,omitempty"`
	// Continues is the checkpoint of another run that this one goes on from, ContinuesSHA256 that
	// of its manifest, and Changes what differs from the document of that run, as far as it is
	// there.
	Continues       string         `json:"continues,omitempty"`
	ContinuesSHA256 string         `json:"continues_sha256,omitempty"`
	Changes         []string       `json:"changes,omitempty"`
	Engine          string         `json:"engine"`
	Threads         int            `json:"threads"`
	Platform        string         `json:"platform"`
	Program         buildinfo.Info `json:"program"`
	Config          string         `json:"config"`
}

// platform is the operating system and the processor's architecture, such as linux/amd64.
func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }

// NewLineage returns that of a document of the plan.
// root is [Options.Root].
func NewLineage(command, name string, cfg experiment.Config, sources map[string]string, engine, root string) (Lineage, error) {
	text, err := configs.Marshal(cfg)
	if err != nil {
		return Lineage{}, err
	}
	digest, err := experiment.Digest(cfg, root)
	if err != nil {
		return Lineage{}, err
	}
	l := Lineage{
		Command: command, Name: name, Seeds: cfg.Seeds, ConfigSHA256: digest, Sources: sources, Engine: engine, Threads: cfg.Train.Threads,
		Platform: platform(), Program: buildinfo.This(), Config: string(text),
	}
	if len(l.Seeds) == 0 {
		l.Seeds = []uint64{cfg.Seed}
	}
	return l, nil
}

// describe writes the lineage of a new run, or of a group of them; the configuration, whose
// presence makes it a run, is to follow.
func (p *Plan) describe(dir string, cfg experiment.Config, counts *network.Counts) error {
	l, err := NewLineage(command, p.name, cfg, p.sources, p.o.Engine.Name(), p.job.root())
	if err != nil {
		return err
	}
	l.Parameters = counts
	if p.init != nil {
		l.Init = p.init.record()
	}
	if p.job.Checkpoint != "" {
		if err := p.continues(&l, p.job.Checkpoint); err != nil {
			return err
		}
	}
	return WriteJSON(filepath.Join(dir, LineageFile), l)
}

// continues notes in a lineage from which checkpoint a run goes on, and with which changes.
func (p *Plan) continues(l *Lineage, path string) (err error) {
	if l.Continues, err = objects.Abs(cmp.Or(p.job.Continues, path)); err != nil {
		return err
	}
	if _, l.ContinuesSHA256, err = stepOf(path); err != nil {
		return err
	}
	run, from, err := Point(path)
	if err != nil || from == "" {
		return err
	}
	changes, err := trainChanges(p.kinds, run, p.cfg)
	for _, c := range changes {
		l.Changes = append(l.Changes, c.String())
	}
	return err
}

// stepOf returns the step of a checkpoint, and what identifies it; 0 where path is empty.
func stepOf(path string) (step int64, sum string, err error) {
	if path == "" {
		return 0, "", nil
	}
	c, err := checkpoint.Open(path)
	if err != nil {
		return 0, "", err
	}
	return c.Step, c.SHA256, c.Close()
}

// redescribe updates the configuration of a resumed run to what has changed, which trainChanges has
// allowed. Everything else stays what it was when the run began.
func redescribe(dir string, cfg experiment.Config, root string) error {
	var l Lineage
	if err := ReadJSON(filepath.Join(dir, LineageFile), &l); err != nil {
		return err
	}
	text, err := configs.Marshal(cfg)
	if err != nil || string(text) == l.Config {
		return err
	}
	l.Config = string(text)
	if l.ConfigSHA256, err = experiment.Digest(cfg, root); err != nil {
		return err
	}
	if err := WriteJSON(filepath.Join(dir, LineageFile), l); err != nil {
		return err
	}
	return WriteConfig(dir, cfg)
}
