package ablate

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
)

// Config is a study file.
type Config struct {
	// Base is the file of the base experiment, relative to the study's folder, or the name of a
	// shipped one.
	Base string `yaml:"base"`
	// Seeds are those of every cell; empty takes the base's.
	Seeds []uint64 `yaml:"seeds,omitempty"`
	// Set is assigned to every cell, before the levels.
	Set study.Assignments `yaml:"set,omitempty"`
	// Metrics are the columns of the tables. The first one is plotted, and the one that cells are
	// compared by on screen.
	Metrics []string `yaml:"metrics"`
	// Factors have levels by name, which are assignments to keys of the base.
	Factors Factors `yaml:"factors"`
}

// Defaults returns the four metrics of the specification, and turnover.
func Defaults() Config {
	return Config{Metrics: []string{"sharpe", "total_return", "volatility", "max_drawdown", "turnover"}}
}

// Validate reports what is wrong with the fields by themselves.
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(c.Base != "", "base", "required: the file of the base experiment, or the name of a shipped one")
	p.Check(len(c.Factors) > 0, "factors", "required: what is varied")
	p.NotEmpty("metrics", c.Metrics)
	seeds := map[uint64]bool{}
	for _, s := range c.Seeds {
		p.Check(!seeds[s], "seeds", "%d is given twice", s)
		seeds[s] = true
	}
	metrics := map[string]bool{}
	for _, m := range c.Metrics {
		p.Check(!metrics[m], "metrics", "%q is given twice", m)
		metrics[m] = true
	}
	return p.Err()
}

// Factors is a mapping from names to factors, in the order of the document.
type Factors []Factor

// Factor is something that a study varies.
type Factor struct {
	Name   string
	Levels []Level
	at     configs.Section
}

// Level is one choice.
type Level struct {
	Name string
	Set  study.Assignments
	at   configs.Section
}

// DecodeConfig reads the mapping; all its problems are reported.
func (f *Factors) DecodeConfig(raw configs.Section) error {
	var doc map[string]map[string]configs.Section
	var parts map[string]configs.Section
	if err := raw.Decode(&parts); err != nil {
		return err
	}
	if err := raw.Decode(&doc); err != nil {
		return err
	}
	*f = nil
	var errs configs.Errors
	fail := func(err error) { errs = append(errs, study.Problems(err)...) }
	slugs := map[string]string{}
	for _, name := range raw.Keys() {
		at := parts[name]
		factor := Factor{Name: name, at: at}
		if other, taken := slugs[study.Slug(name)]; taken || study.Slug(name) == "" {
			fail(raw.Errorf(study.PathKey(name), "its folders would be called %q, as those of %q", study.Slug(name), other))
		}
		slugs[study.Slug(name)] = name
		if len(at.Keys()) == 0 {
			fail(raw.Errorf(study.PathKey(name), "it has no levels"))
		}
		folders := map[string]string{}
		for _, level := range at.Keys() {
			l := Level{Name: level, at: doc[name][level]}
			if other, taken := folders[study.Slug(level)]; taken || study.Slug(level) == "" {
				fail(at.Errorf(study.PathKey(level), "its folder would be called %q, as that of %q", study.Slug(level), other))
			}
			folders[study.Slug(level)] = level
			if err := l.at.Decode(&l.Set); err != nil {
				fail(err)
			} else if len(l.Set) == 0 {
				fail(at.Errorf(study.PathKey(level), "it assigns nothing; the base's level is written with the values that the base has"))
			}
			factor.Levels = append(factor.Levels, l)
		}
		*f = append(*f, factor)
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// EncodeConfig writes the mapping in its order.
func (f Factors) EncodeConfig() (any, error) {
	doc, err := configs.Parse("factors", nil)
	if err != nil {
		return nil, err
	}
	for _, factor := range f {
		for _, l := range factor.Levels {
			if err := doc.SetValue(study.PathKey(factor.Name)+study.PathKey(l.Name), l.Set); err != nil {
				return nil, err
			}
		}
	}
	return doc, nil
}

// Open reads a study from a file, or from the shipped ones where there is no such file, as
// [Decode] does.
func Open(path string) (c Config, base string, err error) {
	doc, err := experiment.Document(path)
	if err != nil {
		return c, "", err
	}
	return Decode(doc, path)
}

// Decode decodes the document of a study that was read at a path. The base's path is returned as it
// is found from the working directory, or the name of a shipped experiment.
func Decode(doc *configs.Document, path string) (c Config, base string, err error) {
	c = Defaults()
	if _, ok := doc.Lookup("factors"); !ok {
		if _, ok := doc.Lookup("env"); ok {
			return c, "", fmt.Errorf("%s is an experiment and not a study: a study has the keys base and factors", path)
		}
	}
	if err := doc.Decode(&c); err != nil {
		return c, "", err
	}
	return c, study.BasePath(c.Base, path), nil
}
