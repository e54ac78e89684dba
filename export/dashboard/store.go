package dashboard

import (
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Artefact is a published version.
type Artefact struct {
	Digest      string                        `json:"digest"`
	Name        string                        `json:"name"`
	Aliases     []string                      `json:"aliases"`
	Kind        string                        `json:"kind"`
	Description string                        `json:"description"`
	Published   string                        `json:"published"`
	EnvStep     int64                         `json:"env_step"`
	LearnerStep int64                         `json:"learner_step"`
	Seed        *uint64                       `json:"seed"`
	Metrics     map[string]performance.Number `json:"metrics"`
	Config      string                        `json:"config_digest"`
	Data        string                        `json:"data_digest"`
	Code        string                        `json:"code_version"`
	Info        map[string]string             `json:"info"`
	Files       []ArtefactFile                `json:"files"`
	// Golden is how many recorded decisions it has, 0 for none.
	Golden int `json:"golden"`
	// Lineage is what it descends from, itself first.
	Lineage []Ancestor `json:"lineage"`
}

// ArtefactFile is a file of a version.
type ArtefactFile struct {
	Title  string `json:"title"`
	Size   int64  `json:"size"`
	Digest string `json:"digest"`
}

// Ancestor is a version in a lineage. Store is the id of the store that has it, empty for none of
// those that are shown.
type Ancestor struct {
	Digest string `json:"digest"`
	Depth  int    `json:"depth"`
	Name   string `json:"name"`
	Store  string `json:"store"`
}

// Artefacts lists the versions of a store, the newest first, with their lineage over all stores
// that are shown.
func (b *Board) Artefacts(id string) (list []Artefact, err error) {
	it, err := b.item(Store, id)
	if err != nil {
		return nil, err
	}
	s, err := artifact.Open(it.path, artifact.Options{MustExist: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	versions, err := s.List()
	if err != nil {
		return nil, err
	}
	var others []*artifact.Store
	ids := map[string]string{s.Dir(): id}
	if slices.ContainsFunc(versions, func(v artifact.Version) bool { return len(v.Manifest.Parents) > 0 }) {
		for _, o := range b.stores() {
			if o.ID == id {
				continue
			}
			other, err := artifact.Open(o.path, artifact.Options{MustExist: true})
			if err != nil {
				continue // It says so itself when it is looked at.
			}
			defer func() { err = errors.Join(err, other.Close()) }()
			ids[other.Dir()] = o.ID
			others = append(others, other)
		}
	}
	list = []Artefact{}
	for _, v := range versions {
		m := v.Manifest
		a := Artefact{
			Digest: v.Digest, Name: m.Name, Aliases: append([]string{}, v.Aliases...), Kind: m.Kind, Description: m.Description, EnvStep: m.EnvStep, LearnerStep: m.LearnerStep, Seed: m.Seed,
			Metrics: map[string]performance.Number{}, Config: m.ConfigDigest, Data: m.DataDigest, Code: m.CodeVersion, Info: m.Info, Files: []ArtefactFile{}, Lineage: []Ancestor{},
		}
		if a.Info == nil {
			a.Info = map[string]string{}
		}
		if !v.Published.IsZero() {
			a.Published = v.Published.UTC().Format(time.RFC3339)
		}
		for k, x := range sorted.All(m.Metrics) {
			a.Metrics[k] = performance.Number(x)
		}
		if m.Golden != nil {
			a.Golden = m.Golden.Rows
		}
		for _, f := range v.Files {
			a.Files = append(a.Files, ArtefactFile{f.Title, f.Size, f.Digest})
		}
		ancestors, err := s.Lineage(v.Digest, others...)
		if err != nil {
			return nil, err
		}
		for _, p := range ancestors {
			n := Ancestor{Digest: p.Digest, Depth: p.Depth, Store: ids[p.Store]}
			if p.Version != nil {
				n.Name = p.Version.Manifest.Name
			}
			a.Lineage = append(a.Lineage, n)
		}
		list = append(list, a)
	}
	slices.SortStableFunc(list, func(x, y Artefact) int {
		switch {
		case x.Published > y.Published:
			return -1
		case x.Published < y.Published:
			return 1
		}
		return 0
	})
	return list, nil
}

// stores are the items that are stores.
func (b *Board) stores() []Item {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var list []Item
	for _, it := range b.items {
		if it.Kind == Store {
			list = append(list, it)
		}
	}
	return list
}

// openArtefactFile opens a file of a version, under the name that it is saved as.
func (b *Board) openArtefactFile(id, digest, title string) (f io.ReadCloser, name string, err error) {
	it, err := b.item(Store, id)
	if err != nil {
		return nil, "", err
	}
	s, err := artifact.Open(it.path, artifact.Options{MustExist: true})
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	v, err := s.Resolve(digest)
	if err != nil {
		return nil, "", err
	}
	if !slices.ContainsFunc(v.Files, func(f artifact.File) bool { return f.Title == title }) {
		return nil, "", fmt.Errorf("%s has no file %q: %w", v, title, errMissing)
	}
	f, err = v.Open(title)
	return f, filepath.Base(filepath.FromSlash(path.Clean(title))), err
}
