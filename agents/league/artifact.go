package league

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/versus"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// ModelsDir has the models of members that are artefacts, in a league's directory.
const ModelsDir = "members"

// Fixed is a member of the document: an opponent, or a version of an artefact store.
type Fixed struct {
	versus.Opponent `yaml:",inline"`
	// Ref is an artefact, as STORE//NAME:ALIAS or STORE//NAME@sha256:…, in place of Path. The
	// league copies its model into its own directory when it begins, and writes the version here.
	Ref string `yaml:"ref,omitempty"`
}

// Called is the name of the member.
func (f Fixed) Called() string {
	if f.Name == "" && f.Ref != "" {
		return f.Ref
	}
	return f.Opponent.Called()
}

// checkMembers reports what is wrong with the members of a document.
func checkMembers(p *configs.Problems, list []Fixed) {
	opponents := make([]versus.Opponent, len(list))
	for i, f := range list {
		opponents[i] = f.Opponent
		if f.Ref != "" {
			p.Check(f.Path == "" || filepath.Dir(f.Path) == ModelsDir, fmt.Sprintf("members[%d].ref", i), "names a model, as path does: expected one of them")
			opponents[i].Name, opponents[i].Path = f.Called(), f.Ref
		}
	}
	versus.Check(p, "members", opponents)
}

// resolve finds the versions of members that are artefacts, those without a store in the one given,
// and reads their models.
func (l *League) resolve() error {
	l.models = make([]*onnx.Model, len(l.c.Members))
	for i := range l.c.Members {
		f := &l.c.Members[i]
		if f.Ref == "" {
			continue
		}
		fail := func(err error) error { return fmt.Errorf("members[%d].ref: %w", i, err) }
		r, err := artifact.ParseReference(f.Ref)
		if err != nil {
			return fail(err)
		}
		if r.Store == "" {
			r.Store = l.o.Store
		}
		if r.Store, err = filepath.Abs(r.Store); err != nil {
			return fail(err)
		}
		s, err := artifact.Open(r.Store, artifact.Options{MustExist: true})
		if err != nil {
			return fail(err)
		}
		v, err := s.ResolveReference(r)
		if err != nil {
			return fail(err)
		}
		if l.models[i], err = v.Model(); err != nil {
			return fail(err)
		}
		f.Name = f.Called()
		f.Ref = r.Store + "//" + v.Manifest.Name + "@" + v.Digest
		f.Path = filepath.Join(ModelsDir, fmt.Sprintf("member-%d.onnx", i))
	}
	return nil
}

// fit reports whether the models of artefacts fit the world.
func (l *League) fit(ctx context.Context) error {
	for i, m := range l.models {
		if m == nil {
			continue
		}
		a, err := publish.NewActor(ctx, m, l.worlds, envs.Test, l.o.Run.Engine, 1)
		if err != nil {
			return fmt.Errorf("members[%d]: %s: %w", i, l.c.Members[i].Ref, err)
		}
		if err := a.Close(); err != nil {
			return err
		}
	}
	return nil
}

// copyModels writes the models of artefacts into a directory, that of a new league or of its
// rehearsal.
func (l *League) copyModels(dir string) error {
	var errs []error
	for i, m := range l.models {
		if m == nil {
			continue
		}
		path := filepath.Join(dir, l.c.Members[i].Path)
		errs = append(errs, os.MkdirAll(filepath.Dir(path), 0o755), onnx.Save(path, m, onnx.SaveOptions{}))
	}
	return errors.Join(errs...)
}

// opponents are the members of the document as players, models of artefacts below a directory.
func (c *Config) opponents(dir string) []versus.Opponent {
	list := make([]versus.Opponent, len(c.Members))
	for i, f := range c.Members {
		list[i] = f.Opponent
		if f.Ref != "" {
			list[i].Path = filepath.Join(dir, f.Path)
		}
	}
	return list
}
