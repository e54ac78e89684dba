package serve

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/models/artifact"
)

// Artifacts are the versions of an artefact store: their names are digests, and their aliases the
// store's. Without a policy the version of [artifact.Latest] answers requests that name none. Of a
// name without that alias it is the newest version that has one, and of a name without any, the
// newest. The versions of all other aliases are loaded too; all of them are followed.
type Artifacts struct {
	store  *artifact.Store
	models map[string]Config

	// The findings of the last scan stay true until the index is replaced.
	index os.FileInfo
	list  []Listing
}

// NewArtifacts makes a source of a store. models says which artefacts are served and how; nil means
// all of them, as they are.
func NewArtifacts(store *artifact.Store, models map[string]Config) *Artifacts {
	return &Artifacts{store: store, models: models}
}

// Scan implements [Source]. It reads the store when its index has been replaced since the last
// time.
func (a *Artifacts) Scan(context.Context) ([]Listing, error) {
	index, err := os.Stat(filepath.Join(a.store.Dir(), "index.json"))
	if err != nil {
		return nil, fmt.Errorf("scan artefact store: %w", err)
	}
	if a.index != nil && unchanged(a.index, index) {
		return slices.Clone(a.list), nil
	}
	versions, err := a.store.List()
	if err != nil && len(versions) == 0 {
		return nil, fmt.Errorf("scan artefact store: %w", err)
	}
	byName := map[string]*Listing{}
	for name, config := range a.models {
		byName[name] = listing(name, config)
		byName[name].Err = fmt.Errorf("the store has no artefact %q", name)
	}
	for _, v := range versions {
		name := v.Manifest.Name
		if !v.HasModel() {
			continue
		}
		l := byName[name]
		if l == nil {
			if a.models != nil {
				continue
			}
			l = listing(name, Config{})
			byName[name] = l
		}
		l.Err = nil
		l.Versions = append(l.Versions, Candidate{Name: v.Digest, Open: func(ctx context.Context) (*Content, error) { return openArtifact(v) }})
		for _, alias := range v.Aliases {
			l.Aliases[alias] = v.Digest
		}
	}
	a.list = nil
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		l := byName[name]
		if p := &l.Config.Policy; !p.All && p.Latest == 0 && len(p.Specific) == 0 {
			p.Specific = followed(l)
		}
		a.list = append(a.list, *l)
	}
	if err == nil { // what could not be read is tried again
		a.index = index
	}
	return slices.Clone(a.list), nil
}

// followed are the aliases of a listing, the one that answers who names no version first: latest,
// otherwise, as after pulling a tag, one of the newest version that has any. Without aliases it is
// the newest version.
func followed(l *Listing) []string {
	if len(l.Versions) == 0 {
		return nil
	}
	if len(l.Aliases) == 0 {
		return []string{l.Versions[len(l.Versions)-1].Name}
	}
	aliases := slices.Sorted(maps.Keys(l.Aliases))
	first := slices.Index(aliases, artifact.Latest)
	for i := len(l.Versions) - 1; first < 0 && i >= 0; i-- {
		first = slices.IndexFunc(aliases, func(a string) bool { return l.Aliases[a] == l.Versions[i].Name })
	}
	if first > 0 {
		name := aliases[first]
		aliases = slices.Insert(slices.Delete(aliases, first, first+1), 0, name)
	}
	return aliases
}

func listing(name string, c Config) *Listing {
	return &Listing{Name: name, Config: c, Aliases: map[string]string{}}
}

// unchanged reports whether a file that is only ever replaced by renaming is the same.
func unchanged(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

func openArtifact(v artifact.Version) (*Content, error) {
	m, err := v.Model()
	if err != nil {
		return nil, err
	}
	golden, err := v.Golden()
	if err != nil {
		return nil, err
	}
	return &Content{Model: m, Golden: golden, Artifact: &v, Manifest: &v.Manifest, Digest: v.Digest}, nil
}
