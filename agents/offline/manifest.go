package offline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// ManifestFile is the manifest of a data set, in its folder.
const ManifestFile = "dataset.json"

// format is the version of the layout that the package comment describes.
const format = 1

// Manifest says what a data set holds and where it comes from.
type Manifest struct {
	Format int `json:"format"`
	// Environment is what the episodes are of.
	Environment Environment `json:"environment"`
	// Observation are the fields of an observation, in the order of the spec, and Action what the
	// environment takes.
	Observation []Field        `json:"observation"`
	Action      artifact.Space `json:"action"`
	// Mask is the number of actions of a mask, 0 where none is recorded. Costs names what a step
	// costs beside the reward.
	Mask  int      `json:"mask,omitempty"`
	Costs []string `json:"costs,omitempty"`
	// Gamma is the discount factor that the behaviour was trained with, 0 where that is not known.
	Gamma float64 `json:"gamma,omitempty"`
	// Behaviours are what acted. Program is what has written the files.
	Behaviours []Behaviour `json:"behaviours"`
	Program    string      `json:"program,omitempty"`
	// Parents are the digests of the versions that the episodes were taken from, such as that of a
	// replay.
	Parents []string `json:"parents,omitempty"`
	// Episodes and Transitions count those of all files.
	Episodes    int64  `json:"episodes"`
	Transitions int64  `json:"transitions"`
	Files       []File `json:"files"`
}

// Environment names an environment.
type Environment struct {
	// Name is that of the spec, and Kind that of a document.
	Name string `json:"name"`
	Kind string `json:"kind,omitempty"`
	// Config is the document's sections env and wrappers, in YAML.
	Config string `json:"config,omitempty"`
	// MaxSteps is the limit of an episode, 0 without one.
	MaxSteps int `json:"max_steps,omitempty"`
}

// Field is one part of an observation.
type Field struct {
	Name  string         `json:"name"`
	Space artifact.Space `json:"space"`
	// Window says that the files have, instead of the values, the number of the last row of a
	// window of a table, which only the environment has.
	Window *Window `json:"window,omitempty"`
}

// Window identifies the table that a field shows windows of.
type Window struct {
	Rows   int    `json:"rows"`
	SHA256 string `json:"sha256"`
}

// Behaviour says what acted, and how.
type Behaviour struct {
	// Algorithm is the kind of the agent; random where every action was drawn uniformly. Policy is
	// where it was found, and SHA256 the digest of its file or artefact.
	Algorithm string `json:"algorithm"`
	Policy    string `json:"policy,omitempty"`
	SHA256    string `json:"sha256,omitempty"`
	// Stochastic says that the policy's own distribution was drawn from, not its best action taken.
	Stochastic bool `json:"stochastic"`
	// Noise is the standard deviation of what was added to actions in [−1, 1]; RandomActions the
	// probability of a uniformly drawn action, and RandomEpisodes the share of episodes in which
	// all are.
	Noise          float64 `json:"noise,omitempty"`
	RandomActions  float64 `json:"random_actions,omitempty"`
	RandomEpisodes float64 `json:"random_episodes,omitempty"`
	// Seed is what the randomness of the episodes descends from.
	Seed uint64 `json:"seed"`
}

// File is a Parquet file of a data set.
type File struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	// Behaviour is the place in Manifest.Behaviours.
	Behaviour   int   `json:"behaviour"`
	Episodes    int64 `json:"episodes"`
	Transitions int64 `json:"transitions"`
}

// Describe returns a manifest without episodes of environments of a spec.
func Describe(spec envs.Spec) Manifest {
	m := Manifest{Format: format, Environment: Environment{Name: spec.Name, MaxSteps: spec.MaxSteps}, Action: agents.DescribeSpace(spec.Action), Costs: slices.Clone(spec.Costs)}
	for _, f := range spec.Observation {
		m.Observation = append(m.Observation, Field{f.Name, agents.DescribeSpace(f.Space), windowOf(f.Window)})
	}
	if spec.Masked {
		m.Mask = envs.MaskLen(spec.Action)
	}
	return m
}

// windowOf identifies a window's table; nil for nil.
func windowOf(w *envs.Window) *Window {
	if w == nil {
		return nil
	}
	sum := sha256.Sum256(w.Table().Bytes())
	return &Window{w.Table().Shape()[0], hex.EncodeToString(sum[:])}
}

// Fits reports what of an environment's spec is not that of the data set, all of it at once.
func (m *Manifest) Fits(spec envs.Spec) error {
	want, errs := Describe(spec), []error(nil)
	differ := func(what string, has, wants any) {
		if a, b := text(has), text(wants); a != b {
			errs = append(errs, fmt.Errorf("%s: the data set has %s, and the environment %s", what, a, b))
		}
	}
	if len(m.Observation) != len(want.Observation) {
		differ("observation", names(m.Observation), names(want.Observation))
	} else {
		for i, f := range want.Observation {
			differ(fmt.Sprintf("observation %d", i), m.Observation[i], f)
		}
	}
	differ("action", m.Action, want.Action)
	differ("mask", m.Mask, want.Mask)
	differ("costs", append([]string{}, m.Costs...), append([]string{}, want.Costs...))
	return errors.Join(errs...)
}

// text is a part of a manifest as an error shows it.
func text(v any) string {
	// Every type of a manifest can be encoded.
	b, _ := json.Marshal(v)
	return string(b)
}

func names(list []Field) (out []string) {
	for _, f := range list {
		out = append(out, f.Name)
	}
	return out
}

// readManifest reads the manifest of a data set, and its SHA-256.
func readManifest(dir string) (*Manifest, string, error) {
	path := filepath.Join(dir, ManifestFile)
	b, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && isPartial(dir):
		return nil, "", fmt.Errorf("data set %s: its recording has not been finished; the same command goes on with it", dir)
	case errors.Is(err, os.ErrNotExist):
		return nil, "", fmt.Errorf("data set %s: there is no %s in it; onnxrl record makes one, and onnxrl dataset import", dir, ManifestFile)
	case err != nil:
		return nil, "", fmt.Errorf("data set: %w", err)
	}
	m := &Manifest{}
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	if err := d.Decode(m); err != nil {
		return nil, "", fmt.Errorf("data set %s: %w", path, err)
	}
	if err := m.validate(); err != nil {
		return nil, "", fmt.Errorf("data set %s: %w", path, err)
	}
	sum := sha256.Sum256(b)
	return m, hex.EncodeToString(sum[:]), nil
}

// validate reports all problems of a manifest that somebody else may have written.
func (m *Manifest) validate() error {
	if m.Format != format {
		return fmt.Errorf("format %d, and this program reads %d", m.Format, format)
	}
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if len(m.Observation) == 0 {
		fail("observation: there is none")
	}
	seen := map[string]bool{}
	for i, f := range m.Observation {
		if f.Name == "" || seen[f.Name] {
			fail("observation[%d].name: %q is empty or taken", i, f.Name)
		}
		seen[f.Name] = true
		if _, err := agents.SpaceOf(f.Space); err != nil {
			fail("observation[%d].space: %w", i, err)
		}
	}
	action, err := agents.SpaceOf(m.Action)
	if err != nil {
		fail("action: %w", err)
	} else if m.Mask != 0 && m.Mask != envs.MaskLen(action) {
		fail("mask: %d actions, expected %d for %v", m.Mask, envs.MaskLen(action), action)
	}
	var episodes, transitions int64
	for i, f := range m.Files {
		if f.Name != filepath.Base(f.Name) || f.Name == "." || f.Name == ".." || strings.ContainsAny(f.Name, `/\`) {
			fail("files[%d].name: %q is not the name of a file in the folder", i, f.Name)
		}
		if f.Behaviour < 0 || f.Behaviour >= len(m.Behaviours) {
			fail("files[%d].behaviour: %d of %d", i, f.Behaviour, len(m.Behaviours))
		}
		if f.Episodes < 0 || f.Transitions < 0 {
			fail("files[%d]: %d episodes and %d transitions", i, f.Episodes, f.Transitions)
		}
		episodes, transitions = episodes+f.Episodes, transitions+f.Transitions
	}
	if episodes != m.Episodes || transitions != m.Transitions {
		fail("episodes, transitions: %d and %d, and the files have %d and %d", m.Episodes, m.Transitions, episodes, transitions)
	}
	return errors.Join(errs...)
}

// write writes the manifest into a folder.
func (m *Manifest) write(dir string) error {
	if err := m.validate(); err != nil {
		return err
	}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(filepath.Join(dir, ManifestFile), append(b, '\n'))
}
