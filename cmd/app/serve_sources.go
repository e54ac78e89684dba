package app

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// catalogue is the one source of onnxrl serve: the models of the repository and of the store, and
// those that the configuration names. The configuration may be replaced while the server runs.
type catalogue struct {
	config     atomic.Pointer[serveConfig]
	repository serve.Source
	// stores are those that were opened, by directory; they stay open as long as the program runs,
	// because versions are read from them later.
	stores map[string]*openStore
}

// openStore is a store and the source that reads it only when it has changed.
type openStore struct {
	*artifact.Store
	source *serve.Artifacts
}

func newCatalogue(c *serveConfig) (*catalogue, error) {
	k := &catalogue{stores: map[string]*openStore{}}
	k.config.Store(c)
	if c.Repository != "" {
		dir, err := objects.Local(c.Repository)
		if err != nil {
			return nil, fmt.Errorf("open the repository: %w", err)
		}
		if info, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("open the repository: %w", err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("open the repository: %s is no directory", dir)
		}
		k.repository = serve.NewRepository(dir)
	}
	if c.Store != "" {
		if _, err := k.store(c.Store); err != nil {
			return nil, err
		}
	}
	return k, nil
}

func (k *catalogue) close() error {
	var first error
	for _, s := range sorted.All(k.stores) {
		first = cmp.Or(first, s.Close())
	}
	return first
}

func (k *catalogue) store(dir string) (*openStore, error) {
	if s := k.stores[dir]; s != nil {
		return s, nil
	}
	s, err := artifact.Open(dir, artifact.Options{MustExist: true})
	if err != nil {
		return nil, err
	}
	k.stores[dir] = &openStore{s, serve.NewArtifacts(s, nil)}
	return k.stores[dir], nil
}

// Scan implements serve.Source.
func (k *catalogue) Scan(ctx context.Context) ([]serve.Listing, error) {
	c := k.config.Load()
	var all []serve.Listing
	if k.repository != nil {
		list, err := k.repository.Scan(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	folders := len(all)
	if c.Store != "" {
		s, err := k.store(c.Store)
		if err != nil {
			return nil, err
		}
		list, err := s.source.Scan(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	for i := range all {
		// The settings of a model itself stand, unless the configuration names the model.
		settings := c.Defaults
		own := i < folders && !reflect.DeepEqual(all[i].Config, serve.Config{})
		if j := slices.IndexFunc(c.models, func(m servedModel) bool { return m.Name == all[i].Name && m.Path == "" && m.Ref == "" }); j >= 0 {
			settings, own = c.models[j].modelSettings, false
		} else {
			all[i].Found = true
		}
		if own {
			// The command's settings stand where the model says nothing.
			if all[i].Config.NonFinite == serve.AutoNonFinite {
				all[i].Config.NonFinite = settings.config().NonFinite
				all[i].Stamp += " non_finite " + settings.NonFinite
			}
		} else if err := settings.apply(&all[i]); err != nil {
			return nil, err
		}
	}
	for _, m := range c.models {
		if m.Path == "" && m.Ref == "" {
			continue
		}
		l := k.list(ctx, c, m)
		if err := m.apply(&l); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	slices.SortStableFunc(all, func(a, b serve.Listing) int { return cmp.Compare(a.Name, b.Name) })
	for i := 1; i < len(all); i++ {
		if all[i].Name == all[i-1].Name {
			return nil, fmt.Errorf("model %q is there twice: give one of them another name with --model NAME=…", all[i].Name)
		}
	}
	return all, nil
}

// apply makes the settings those of a listing. Where they do not say which versions are loaded, the
// listing's own choice stands, and what routes and shadows need is added to it.
func (s *modelSettings) apply(l *serve.Listing) error {
	policy, own := l.Config.Policy, l.Config
	l.Config = s.config()
	// The model says what it is.
	l.Config.State, l.Config.Controls, l.Config.Sequences.Direct = own.State, own.Controls, own.Sequences.Direct
	l.Config.Ports, l.Config.WarmUps, l.Config.Ignored = own.Ports, own.WarmUps, own.Ignored
	l.Config.ModelFile = own.ModelFile
	if p := l.Config.Policy; p.Latest == 0 && !p.All && len(p.Specific) == 0 && len(policy.Specific) > 0 {
		policy.Specific = slices.Clone(policy.Specific)
		for _, version := range s.needed() {
			if !slices.Contains(policy.Specific, version) {
				policy.Specific = append(policy.Specific, version)
			}
		}
		l.Config.Policy = policy
	}
	d, err := configs.Digest(s)
	if err != nil {
		return err
	}
	l.Stamp += " " + d
	return nil
}

// needed are the versions that routes and shadows name.
func (s *modelSettings) needed() []string {
	var list []string
	for _, r := range s.Routes {
		list = append(list, r.Version)
	}
	for _, h := range s.Shadows {
		list = append(list, h.Version)
	}
	return list
}

// list is a model of the configuration. What is wrong with it becomes the listing's error: the
// others are served.
func (k *catalogue) list(ctx context.Context, c *serveConfig, m servedModel) serve.Listing {
	l, err := k.one(ctx, c, m)
	l.Name = m.Name
	if err != nil {
		l.Err = err
	}
	return l
}

func (k *catalogue) one(ctx context.Context, c *serveConfig, m servedModel) (l serve.Listing, err error) {
	if m.Path != "" {
		return fileListing(m.Path)
	}
	defer func() {
		if err != nil {
			err = noFile(m.Ref, err)
		}
	}()
	if err := artifact.Unnamed(m.Ref); err != nil {
		return l, err
	}
	ref, err := artifact.ParseReference(m.Ref)
	if err != nil {
		return l, err
	}
	s, err := k.store(cmp.Or(ref.Store, c.Store, (&storeFlag{}).path()))
	if err != nil {
		return l, err
	}
	if ref.Name == "" {
		v, err := s.ResolveReference(ref)
		if err != nil {
			return l, err
		}
		ref.Name, ref.Digest = v.Manifest.Name, v.Digest
	}
	list, err := s.source.Scan(ctx)
	if err != nil {
		return l, err
	}
	i := slices.IndexFunc(list, func(l serve.Listing) bool { return l.Name == ref.Name })
	if i < 0 {
		// The error says which names there are.
		_, err := s.Resolve(ref.Name)
		return l, cmp.Or(err, fmt.Errorf("%s has no versions", ref.Name))
	}
	l = list[i]
	if version := cmp.Or(ref.Digest, ref.Alias); version != "" {
		if _, err := s.ResolveReference(artifact.Reference{Name: ref.Name, Alias: ref.Alias, Digest: ref.Digest}); err != nil {
			return l, err
		}
		l.Config.Policy = serve.VersionPolicy{Specific: []string{version}}
	}
	return l, nil
}

// noFile says what is wrong with what was not served as an artefact: it may have been meant to be a
// file.
func noFile(ref string, err error) error {
	info, bad := os.Stat(ref)
	switch {
	case bad == nil && info.IsDir():
		return fmt.Errorf("%s is a directory, expected a file NAME.onnx or an artefact (--repository serves the models of a directory): %w", ref, err)
	case bad == nil:
		return fmt.Errorf("%s is a file, and those of models end in .onnx: %w", ref, err)
	case isFile(ref + ".onnx"):
		return fmt.Errorf("there is no file %s; did you mean %s.onnx? As an artefact: %w", ref, ref, err)
	}
	return fmt.Errorf("there is no file %s, and as an artefact: %w", ref, err)
}

// fileListing is a model that is one ONNX file: version 1, again whenever the file is another.
func fileListing(path string) (l serve.Listing, err error) {
	if path, err = objects.Local(path); err != nil {
		return l, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return l, err
	}
	stamp := fmt.Sprintf("%d bytes at %d", info.Size(), info.ModTime().UnixNano())
	l.Versions = []serve.Candidate{{Name: "1", Stamp: stamp, Open: func(context.Context) (*serve.Content, error) {
		m, err := onnx.Load(path)
		if err != nil {
			return nil, err
		}
		digest, err := serve.FileDigest(path)
		if err != nil {
			return nil, err
		}
		return &serve.Content{Model: m, BaseDir: filepath.Dir(path), Digest: digest}, nil
	}}}
	return l, nil
}

// nameOfReference is what a reference calls its model, empty for a digest alone.
func nameOfReference(ref string) string {
	r, err := artifact.ParseReference(ref)
	if err != nil {
		// Loading it says what is wrong.
		return ref
	}
	return r.Name
}
