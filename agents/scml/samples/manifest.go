package samples

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// ManifestFile is the manifest in a folder of samples.
const ManifestFile = "samples.json"

const partialSuffix = ".partial"

// Manifest says what samples there are, of what layout, and of which worlds.
type Manifest struct {
	// Layout is scml.Layout of the program that has made the samples.
	Layout  int `json:"observation_layout"`
	Goal    int `json:"goal"`
	Horizon int `json:"horizon"`
	// Types are the agents whose samples there are, nil for all.
	Types []string `json:"types,omitempty"`
	// Sources are the folders that worlds were read of.
	Sources []string `json:"sources"`
	Worlds  []World  `json:"worlds"`
	// Skipped is how many worlds could not be read.
	Skipped int `json:"skipped"`
	// Factories and Days count the macro samples: episodes, and their days.
	Factories int64 `json:"macro_episodes"`
	Days      int64 `json:"macro_samples"`
	// Threads and Decisions count the micro samples: sides of negotiations, and their decisions.
	Threads   int64 `json:"micro_episodes"`
	Decisions int64 `json:"micro_samples"`
	// Macro, Micro and Residual are the digests of the data sets. The last one has an episode and a
	// sample for each of the second.
	Macro    string `json:"macro_sha256,omitempty"`
	Micro    string `json:"micro_sha256,omitempty"`
	Residual string `json:"residual_sha256,omitempty"`

	// Reading is how long logs were read and followed in this call; writing goes on beside it.
	Reading time.Duration `json:"-"`

	dir, partial string
}

// Source says where the samples come from.
func (m *Manifest) Source() string {
	return fmt.Sprintf("%d worlds, observation layout %d", len(m.Sources), m.Layout)
}

// begin makes the manifest of a folder, or goes on with one.
func begin(to string, worlds []string, o Options) (*Manifest, error) {
	dir := filepath.Clean(to)
	if _, err := os.Lstat(dir); err == nil {
		return nil, fmt.Errorf("%s exists; choose another folder", dir)
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	m := &Manifest{Layout: scml.Layout, Goal: o.Goal, Horizon: o.Horizon, Types: o.Types, Sources: worlds, dir: dir, partial: dir + partialSuffix}
	text, err := os.ReadFile(filepath.Join(m.partial, ManifestFile))
	if errors.Is(err, os.ErrNotExist) {
		if err := os.MkdirAll(m.partial, 0o755); err != nil {
			return nil, err
		}
		return m, m.save()
	}
	if err != nil {
		return nil, err
	}
	was := Manifest{dir: m.dir, partial: m.partial}
	if err := json.Unmarshal(text, &was); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(m.partial, ManifestFile), err)
	}
	if was.Layout != m.Layout || was.Goal != m.Goal || was.Horizon != m.Horizon || !slices.Equal(was.Types, m.Types) || !slices.Equal(was.Sources, m.Sources) {
		return nil, fmt.Errorf("%s was begun with other worlds or options; remove it, or choose another folder", m.partial)
	}
	for _, name := range []string{MacroDir, MicroDir, ResidualDir} {
		// A data set of this name is finished: it was stopped while it finished them, one after
		// another, and makes all of them again, which gives the same ones.
		if _, err := os.Lstat(filepath.Join(m.partial, name)); err == nil {
			if err := os.RemoveAll(m.partial); err != nil {
				return nil, err
			}
			return begin(to, worlds, o)
		}
	}
	return &was, nil
}

// save writes the manifest of what there is so far.
func (m *Manifest) save() error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(filepath.Join(m.partial, ManifestFile), append(b, '\n'))
}

// finish makes the folder of what was written.
func (m *Manifest) finish(macro, micro, residual *offline.Writer) error {
	if m.Skipped == len(m.Worlds) {
		return fmt.Errorf("none of the %d worlds could be read; the first: %s", len(m.Worlds), m.Worlds[0].Problem)
	}
	for _, x := range []struct {
		w                     *offline.Writer
		name                  string
		digest                *string
		episodes, transitions *int64
	}{{macro, MacroDir, &m.Macro, &m.Factories, &m.Days}, {micro, MicroDir, &m.Micro, &m.Threads, &m.Decisions}, {residual, ResidualDir, &m.Residual, &m.Threads, &m.Decisions}} {
		made := x.w.Manifest()
		if made.Episodes == 0 {
			return fmt.Errorf("there is no %s sample of %d worlds: agents of the types %s have not played in them", x.name, len(m.Worlds), strings.Join(m.Types, ", "))
		}
		if err := x.w.Finish(); err != nil {
			return err
		}
		d, err := offline.Open(filepath.Join(m.partial, x.name))
		if err != nil {
			return err
		}
		*x.digest, *x.episodes, *x.transitions = d.Digest, d.Episodes, d.Transitions
	}
	if err := m.save(); err != nil {
		return err
	}
	return os.Rename(m.partial, m.dir)
}

// Samples are those of a folder, opened.
type Samples struct {
	Manifest
	Macro, Micro, Residual *offline.Dataset
}

// Open opens a folder that Collect has made. Samples of another observation layout, and data sets
// that are not those of the manifest, are refused.
func Open(dir string) (*Samples, error) {
	path := filepath.Join(dir, ManifestFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no %s: onnxrl scml samples makes one", dir, ManifestFile)
	}
	if err != nil {
		return nil, err
	}
	s := &Samples{}
	if err := json.Unmarshal(text, &s.Manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Layout != scml.Layout {
		return nil, fmt.Errorf("%s: observation_layout is %d, and this program reads %d: make the samples again with onnxrl scml samples", path, s.Layout, scml.Layout)
	}
	for _, x := range []struct {
		to     **offline.Dataset
		name   string
		digest string
	}{{&s.Macro, MacroDir, s.Manifest.Macro}, {&s.Micro, MicroDir, s.Manifest.Micro}, {&s.Residual, ResidualDir, s.Manifest.Residual}} {
		if *x.to, err = offline.Open(filepath.Join(dir, x.name)); err != nil {
			return nil, err
		}
		if (*x.to).Digest != x.digest {
			return nil, fmt.Errorf("%s: %s_sha256 is %s, and the data set's is %s", path, x.name, x.digest, (*x.to).Digest)
		}
	}
	return s, nil
}
