package ablate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/agents/experiment"
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
	Set Assignments `yaml:"set,omitempty"`
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
	Set  Assignments
	at   configs.Section
}

// Assignments is a mapping from key paths to values, in the order of the document.
type Assignments []Assignment

// Assignment puts a value at a key path of a document.
type Assignment struct {
	Path  string
	Value configs.Section
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
	fail := func(err error) { errs = append(errs, asErrors(err)...) }
	slugs := map[string]string{}
	for _, name := range raw.Keys() {
		at := parts[name]
		factor := Factor{Name: name, at: at}
		if other, taken := slugs[slug(name)]; taken || slug(name) == "" {
			fail(raw.Errorf(pathKey(name), "its folders would be called %q, as those of %q", slug(name), other))
		}
		slugs[slug(name)] = name
		if len(at.Keys()) == 0 {
			fail(raw.Errorf(pathKey(name), "it has no levels"))
		}
		folders := map[string]string{}
		for _, level := range at.Keys() {
			l := Level{Name: level, at: doc[name][level]}
			if other, taken := folders[slug(level)]; taken || slug(level) == "" {
				fail(at.Errorf(pathKey(level), "its folder would be called %q, as that of %q", slug(level), other))
			}
			folders[slug(level)] = level
			if err := l.at.Decode(&l.Set); err != nil {
				fail(err)
			} else if len(l.Set) == 0 {
				fail(at.Errorf(pathKey(level), "it assigns nothing; the base's level is written with the values that the base has"))
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
			if err := doc.SetValue(pathKey(factor.Name)+pathKey(l.Name), l.Set); err != nil {
				return nil, err
			}
		}
	}
	return doc, nil
}

// DecodeConfig reads the mapping. Whether a path exists is found out by decoding the document it is
// assigned to.
func (a *Assignments) DecodeConfig(raw configs.Section) error {
	var doc map[string]configs.Section
	if err := raw.Decode(&doc); err != nil {
		return err
	}
	*a = nil
	var errs configs.Errors
	for _, path := range raw.Keys() {
		if doc[path].IsZero() {
			errs = append(errs, asErrors(raw.Errorf(pathKey(path), "the value is missing"))...)
		}
		*a = append(*a, Assignment{Path: path, Value: doc[path]})
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// EncodeConfig writes the mapping in its order.
func (a Assignments) EncodeConfig() (any, error) {
	doc, err := configs.Parse("set", nil)
	if err != nil {
		return nil, err
	}
	for _, v := range a {
		if err := doc.SetValue(pathKey(v.Path), v.Value); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// String is what --set would take.
func (a Assignments) String() string {
	parts := make([]string, len(a))
	for i, v := range a {
		parts[i] = v.Path + "=" + flow(v.Value)
	}
	return strings.Join(parts, " ")
}

// flow writes a value on one line.
func flow(v configs.Section) string {
	var list []configs.Section
	var entries map[string]configs.Section
	switch {
	case !v.IsScalar() && v.Decode(&list) == nil:
		parts := make([]string, len(list))
		for i, e := range list {
			parts[i] = flow(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case !v.IsScalar() && v.Decode(&entries) == nil:
		var parts []string
		for _, k := range v.Keys() {
			parts = append(parts, k+": "+flow(entries[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	text, err := configs.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// apply assigns to a document. Problems are placed at the assignments.
func (a Assignments) apply(doc *configs.Document) error {
	var errs configs.Errors
	for _, v := range a {
		if err := doc.SetValue(v.Path, v.Value); err != nil {
			errs = append(errs, a.place(err)...)
		}
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// place gives problems of a document the positions of the assignments that caused them; a problem
// elsewhere keeps its own.
func (a Assignments) place(err error) configs.Errors {
	var placed configs.Errors
	for _, e := range asErrors(err) {
		for _, v := range a {
			// The name that a Document gives to values that were set.
			if e.File != "value of "+v.Path {
				continue
			}
			at := asErrors(v.Value.Errorf("", "%s", e.Message))[0]
			if e.Path != v.Path && e.Path != "" {
				at.Message = e.Path + ": " + at.Message
			}
			e = at
			break
		}
		placed = append(placed, e)
	}
	return placed
}

// asErrors makes one list of an error.
func asErrors(err error) configs.Errors {
	var list configs.Errors
	if errors.As(err, &list) {
		return list
	}
	return configs.Errors{{Message: err.Error()}}
}

// pathKey writes a key as a step of a key path.
func pathKey(key string) string { return fmt.Sprintf("[%q]", key) }

// slug is a name as a part of a folder's: letters, digits, underscores and inner dots; runs of
// everything else are a hyphen.
func slug(name string) string {
	var b strings.Builder
	hyphen := false
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '.' && b.Len() > 0:
			if hyphen && b.Len() > 0 {
				b.WriteByte('-')
			}
			hyphen = false
			b.WriteRune(r)
		default:
			hyphen = true
		}
	}
	return strings.TrimRight(b.String(), ".")
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
	if filepath.IsAbs(c.Base) {
		return c, c.Base, nil
	}
	beside := filepath.Join(filepath.Dir(path), c.Base)
	if _, err := os.Stat(beside); err == nil || filepath.Dir(c.Base) != "." {
		return c, beside, nil
	}
	return c, c.Base, nil
}
