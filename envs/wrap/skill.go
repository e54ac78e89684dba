package wrap

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// SkillField is the field of the observation that [Skill] adds: float32 [dim], the same throughout
// an episode.
const SkillField = "skill"

// Skills are a further input of policies besides what the environment shows (Eysenbach et al.
// 2018, arXiv 1802.06070): a vector that each episode draws.
type Skills struct {
	// Dim is the number of elements of a skill; 0 adds none.
	Dim int `yaml:"dim,omitzero"`
	// Kind is one_hot (the default), one of dim skills with equal odds, or sphere, a direction that
	// is uniform on the unit sphere of dim dimensions.
	Kind string `yaml:"kind,omitzero"`
	// Fixed is the number of the unit vector, from 0, that is the skill of all episodes on
	// validation and test splits, and of the published policy. Left out, theirs are drawn too,
	// and the published policy has an input for it. Skills of training are always drawn.
	Fixed *int `yaml:"fixed,omitempty"`
}

// The words of Skills.Kind.
const (
	OneHot = "one_hot"
	Sphere = "sphere"
)

// On reports whether there are skills.
func (s Skills) On() bool { return s.Dim > 0 }

// on returns the skills of a split.
func (s Skills) on(split envs.Split) Skills {
	if split == envs.Train {
		s.Fixed = nil
	}
	return s
}

// FixedSkill returns the skill [dim] that evaluation and what is published have in environments
// with the wrappers that [Apply] has put around a factory's; nil where there is none.
func FixedSkill(f envs.Factory) []float32 {
	w, ok := FindFactory[interface{ Skills() Skills }](f)
	if !ok || w.Skills().Fixed == nil {
		return nil
	}
	z := make([]float32, w.Skills().Dim)
	z[*w.Skills().Fixed] = 1
	return z
}

// Validate reports all problems of the skills.
func (s Skills) Validate() error {
	var p configs.Problems
	if p.OneOf("kind", s.Kind, "", OneHot, Sphere); s == (Skills{}) {
		return p.Err()
	}
	p.AtLeast("dim", s.Dim, 2)
	p.Check(s.Fixed == nil || *s.Fixed >= 0 && *s.Fixed < s.Dim, "fixed", "must be the number of one of %d skills, from 0", s.Dim)
	return p.Err()
}

// Skill adds [SkillField] to the observation, as the last field. It is drawn from the key of the
// episode, whose remaining randomness is what it is without.
type Skill struct {
	envs.Env
	c       Skills
	spec    envs.Spec
	inner   *envs.TimeStep
	skill   []float32
	random  rng.Stream
	running bool
}

var (
	_ envs.Env   = (*Skill)(nil)
	_ envs.Saver = (*Skill)(nil)
)

// NewSkill returns e with skills of at least two dimensions.
func NewSkill(e envs.Env, c Skills) (*Skill, error) {
	spec := e.Spec()
	if err := configs.Validate(c); err != nil {
		return nil, fmt.Errorf("skill of %s: %w", spec.Name, err)
	}
	if !c.On() {
		return nil, fmt.Errorf("skill of %s: dim is 0, expected at least 2", spec.Name)
	}
	if spec.Observation.Index(SkillField) >= 0 {
		return nil, fmt.Errorf("skill of %s: its observations are %s, so there is a %q already", spec.Name, names(spec.Observation), SkillField)
	}
	w := &Skill{Env: e, c: c, spec: spec, inner: envs.NewTimeStep(spec), skill: make([]float32, c.Dim)}
	low := 0.0
	if c.Kind == Sphere {
		low = -1
	}
	w.spec.Observation = append(slices.Clone(spec.Observation), envs.Field{Name: SkillField, Space: envs.NewBox(low, 1, c.Dim)})
	w.spec.Random = spec.Random || c.Fixed == nil
	return w, nil
}

// Unwrap returns the environment inside.
func (w *Skill) Unwrap() envs.Env { return w.Env }

// Spec implements envs.Env.
func (w *Skill) Spec() envs.Spec { return w.spec }

// Reset implements envs.Env.
func (w *Skill) Reset(key rng.Key, ts *envs.TimeStep) error {
	w.running = false
	w.before(ts)
	if err := w.Env.Reset(key, w.inner); err != nil {
		return err
	}
	w.draw(key)
	w.running = true
	w.after(ts)
	return nil
}

// draw takes the skill of an episode.
func (w *Skill) draw(key rng.Key) {
	clear(w.skill)
	w.random.Seed(key.Split(SkillField))
	switch {
	case w.c.Fixed != nil:
		w.skill[*w.c.Fixed] = 1
	case w.c.Kind != Sphere:
		w.skill[w.random.IntN(len(w.skill))] = 1
	default:
		for norm := 0.0; norm == 0; {
			w.random.FillNormal32(w.skill, 0, 1)
			for _, x := range w.skill {
				norm += float64(x) * float64(x)
			}
			for i, x := range w.skill {
				w.skill[i] = float32(float64(x) / math.Sqrt(norm))
			}
		}
	}
}

// Step implements envs.Env.
func (w *Skill) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	w.before(ts)
	if err := w.Env.Step(action, w.inner); err != nil {
		return err
	}
	w.running = w.inner.Type != envs.Last
	w.after(ts)
	return nil
}

// before lets the environment write to where it belongs.
func (w *Skill) before(ts *envs.TimeStep) {
	copy(w.inner.Obs, ts.Obs)
	w.inner.Mask, w.inner.Costs, w.inner.Info = ts.Mask, ts.Costs, ts.Info
}

// after takes over everything, and adds the skill.
func (w *Skill) after(ts *envs.TimeStep) {
	copy(ts.Obs, w.inner.Obs)
	copy(ts.Rows, w.inner.Rows)
	copy(ts.Obs[len(w.inner.Obs)].Float32s(), w.skill)
	ts.Type, ts.Reward, ts.Discount = w.inner.Type, w.inner.Reward, w.inner.Discount
}

type skillState struct {
	Skill []float32 `json:"skill"`
	Env   []byte    `json:"env"`
}

// SaveState implements envs.Saver.
func (w *Skill) SaveState() ([]byte, error) {
	if !w.running {
		return nil, fmt.Errorf("save %s: %w", w.spec.Name, envs.ErrNoEpisode)
	}
	inner, err := envs.SaveState(w.Env)
	if err != nil {
		return nil, err
	}
	return json.Marshal(skillState{w.skill, inner})
}

// LoadState implements envs.Saver.
func (w *Skill) LoadState(data []byte, ts *envs.TimeStep) error {
	var s skillState
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load skill: %w", err)
	}
	if len(s.Skill) != len(w.skill) {
		return fmt.Errorf("load skill of %s: it has %d elements, expected %d", w.spec.Name, len(s.Skill), len(w.skill))
	}
	w.before(ts)
	if err := envs.LoadState(w.Env, s.Env, w.inner); err != nil {
		return err
	}
	copy(w.skill, s.Skill)
	w.running = true
	w.after(ts)
	return nil
}
