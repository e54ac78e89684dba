package walkforward

import (
	"fmt"
	"strings"

	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/split"
)

// Config is a study file.
type Config struct {
	// Base is the file of the base experiment, or of a population, relative to the study's folder,
	// or the name of a shipped one.
	Base string `yaml:"base"`
	// Scheme divides the data into folds.
	Scheme split.Scheme `yaml:"scheme"`
	// WarmStart says what parameters begin with: none draws them for every fold, last goes on with
	// those of the best policy of the fold before, by seed.
	WarmStart string `yaml:"warm_start"`
	// Seeds are those of every fold; empty takes the base's.
	Seeds []uint64 `yaml:"seeds,omitzero"`
	// Ensemble lets the seeds' policies act together.
	Ensemble Ensemble `yaml:"ensemble"`
	// Set is assigned to every cell.
	Set study.Assignments `yaml:"set,omitzero"`
	// Variants are further ways of training by name, each a mapping of assignments to the base.
	Variants Variants `yaml:"variants,omitzero"`

	// of, unless nil, is the base's document.
	of *configs.Document
}

// Ensemble says how seeds act as one policy in the test ranges.
type Ensemble struct {
	// By is mean (of the probabilities), majority (of the actions) or validation (the seed that is
	// best on the fold's validation range); empty is none.
	By string `yaml:"by"`
}

// The values of warm_start and ensemble.by.
const (
	None         = "none"
	Last         = "last"
	ByValidation = "validation"
)

// Defaults walks year by year, from five years of training, and begins every fold from nothing.
func Defaults() Config { return Config{Scheme: split.DefaultScheme(), WarmStart: None} }

// Validate reports what is wrong with the fields by themselves.
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(c.Base != "", "base", "required: the file of the base experiment, or the name of a shipped one")
	p.OneOf("warm_start", c.WarmStart, None, Last)
	p.Check(c.WarmStart != Last || c.Scheme.Kind != split.Combinatorial, "warm_start", "folds of the kind %s have no order: the fold before may have learnt from what is tested", split.Combinatorial)
	if s := c.Scheme; s.Kind == split.Combinatorial {
		p.Check(s.Train.IsZero() && s.Valid.IsZero() && s.Test.IsZero() && s.Step.IsZero(), "scheme", "train, valid, test and step belong to the kinds %s and %s: blocks are as long as the data make them", split.Expanding, split.Rolling)
	}
	p.OneOf("ensemble.by", c.Ensemble.By, "", evaluate.ByMean, evaluate.ByMajority, ByValidation)
	p.Check(c.Ensemble.By == "" || len(c.Seeds) != 1, "ensemble.by", "one seed makes no ensemble")
	seen := map[uint64]bool{}
	for _, s := range c.Seeds {
		p.Check(!seen[s], "seeds", "%d is given twice", s)
		seen[s] = true
	}
	return p.Err()
}

// Variants is a mapping from names to assignments, in the order of the document.
type Variants []Variant

// Variant is a way of training.
type Variant struct {
	Name string
	Set  study.Assignments
}

// DecodeConfig reads the mapping; all its problems are reported.
func (v *Variants) DecodeConfig(raw configs.Section) error {
	var doc map[string]study.Assignments
	var parts map[string]configs.Section
	if err := raw.Decode(&parts); err != nil {
		return err
	}
	if err := raw.Decode(&doc); err != nil {
		return err
	}
	*v = nil
	var errs configs.Errors
	folders := map[string]string{study.Slug(Base): Base}
	for _, name := range raw.Keys() {
		at := study.PathKey(name)
		if other, taken := folders[study.Slug(name)]; taken || study.Slug(name) == "" {
			errs = append(errs, study.Problems(raw.Errorf(at, "its folders would be called %q, as those of %q", study.Slug(name), other))...)
		}
		folders[study.Slug(name)] = name
		if len(doc[name]) == 0 {
			errs = append(errs, study.Problems(raw.Errorf(at, "it assigns nothing: the base is a variant already"))...)
		}
		*v = append(*v, Variant{name, doc[name]})
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// EncodeConfig writes the mapping in its order.
func (v Variants) EncodeConfig() (any, error) {
	doc, err := configs.Parse("variants", nil)
	if err != nil {
		return nil, err
	}
	for _, one := range v {
		if err := doc.SetValue(study.PathKey(one.Name), one.Set); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// Decode decodes the document of a study that was read at a path. The base's path is returned as it
// is found from the working directory, or the name of a shipped experiment.
func Decode(doc *configs.Document, path string) (c Config, base string, err error) {
	c = Defaults()
	if _, ok := doc.Lookup("scheme"); !ok {
		if _, ok := doc.Lookup("env"); ok {
			return c, "", fmt.Errorf("%s is an experiment and not a study: a study has the keys base and scheme", path)
		}
	}
	if s, ok := doc.Lookup("scheme.kind"); ok {
		var kind string
		if s.Decode(&kind) == nil && kind == split.Combinatorial {
			c.Scheme = split.Scheme{Purge: c.Scheme.Purge, Blocks: 6, TestBlocks: 2}
		}
	}
	if err := doc.Decode(&c); err != nil {
		return c, "", err
	}
	return c, study.BasePath(c.Base, path), nil
}

// Edit edits a study, as --set does, in what is its own: scheme, warm_start, ensemble and variants,
// such as variants["PPO"]["train.total_env_steps"]. It returns the edits that are left, which are
// the base's.
func Edit(doc *configs.Document, sets ...string) (left []string, err error) {
	var own []string
	for _, one := range sets {
		path, _, _ := strings.Cut(one, "=")
		switch path[:strings.IndexAny(path+".", ".[")] {
		case "scheme", "warm_start", "ensemble", "variants":
			own = append(own, one)
		default:
			left = append(left, one)
		}
	}
	return left, doc.Set(own...)
}

// Of decodes the section of a population's document that says how it is judged; the base is the
// population. doc was read at a path.
func Of(doc *configs.Document, path string) (c Config, err error) {
	section, ok := doc.Lookup("walkforward")
	if !ok {
		return c, fmt.Errorf("%s: it has no section walkforward", path)
	}
	c = Defaults()
	c.Base = path
	if err := section.Decode(&c); err != nil {
		return c, err
	}
	c.of = doc.Clone()
	return c, nil
}
