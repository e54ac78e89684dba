package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// CollectOptions say what a collection keeps beside what aliases and their lineage need.
type CollectOptions struct {
	// KeepLast keeps the versions of each name that were published last, this many of them.
	KeepLast int
	// Before keeps what was published, and blobs that were written, at this time or later; the zero
	// time keeps none of them. Programs that write into the layout without its lock name a blob in
	// the index after they have written it, so a store that they write into needs a time that lies
	// before they began.
	Before time.Time
	// Keep are full digests of versions that are needed elsewhere, for instance as parents of
	// versions in another store; what the store does not have is ignored.
	Keep []string
	// DryRun changes nothing.
	DryRun bool
}

// Collected says what a collection has removed, or would remove.
type Collected struct {
	// Removed are the versions, in the order of the index, and Kept is the number of those that
	// stay; Recent of them stay for nothing but CollectOptions.Before.
	Removed      []Version
	Kept, Recent int
	// Blobs and Bytes count the files: those of removed versions that no other needs, and what
	// killed processes have left.
	Blobs int
	Bytes int64
}

// Collect removes versions that nothing needs, and then blobs that belong to nothing. A version is
// needed that has an alias, that the options keep, or that a needed version was made from;
// artefacts of other programs and what they refer to stay. The index is replaced before the first
// blob is removed, and all happens under the lock. A publication that goes on at the same time
// writes again what it had counted on. After a kill -9 the next collection removes the rest. Where
// a version that is listed cannot be read, what it needs is not known, so nothing is removed and
// the error names it. A [Version] that was looked up before its removal cannot be read any more.
func (s *Store) Collect(ctx context.Context, o CollectOptions) (Collected, error) {
	c, err := s.collect(ctx, o)
	if err != nil {
		return c, fmt.Errorf("collect garbage in %s: %w", s.dir, err)
	}
	return c, nil
}

func (s *Store) collect(ctx context.Context, o CollectOptions) (c Collected, err error) {
	if err := s.alive(); err != nil {
		return c, err
	}
	if o.KeepLast < 0 {
		return c, fmt.Errorf("keep the last %d versions: expected no negative number", o.KeepLast)
	}
	for _, d := range o.Keep {
		if err := checkFullDigest(d); err != nil {
			return c, err
		}
	}
	release, err := s.lock(ctx)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, release()) }()
	if !o.DryRun {
		s.cleaned.Store(false)
		if err := s.clean(); err != nil {
			return c, err
		}
	}
	index, err := s.readIndex()
	if err != nil {
		return c, err
	}
	p, err := s.plan(ctx, index, o)
	if err != nil {
		return c, err
	}
	for _, v := range p.versions {
		switch d := v.Digest; {
		case !p.keep[d]:
			c.Removed = append(c.Removed, v)
		case p.recent[d]:
			c.Recent++
			fallthrough
		default:
			c.Kept++
		}
	}
	if len(c.Removed) > 0 && !o.DryRun {
		index.Manifests = slices.DeleteFunc(index.Manifests, func(d ocispec.Descriptor) bool {
			return slices.ContainsFunc(c.Removed, func(v Version) bool { return v.Digest == d.Digest.String() })
		})
		if err := s.writeIndex(index); err != nil {
			return Collected{Kept: len(p.versions)}, err
		}
	}
	c.Blobs, c.Bytes, err = s.sweep(ctx, p.blobs, o)
	return c, err
}

// keepPlan is what a collection keeps.
type keepPlan struct {
	// versions are all that are listed, of this program.
	versions []Version
	// keep are the digests of versions that stay; recent is the part of them that stays for its
	// date alone.
	keep, recent map[string]bool
	// blobs are the digests of files that stay.
	blobs map[digest.Digest]bool
}

func (s *Store) plan(ctx context.Context, index *ocispec.Index, o CollectOptions) (*keepPlan, error) {
	p := &keepPlan{keep: map[string]bool{}, recent: map[string]bool{}, blobs: map[digest.Digest]bool{}}
	own := map[digest.Digest]bool{}
	var roots []string
	for _, e := range entries(index) {
		v, err := s.load(e)
		if errors.Is(err, errForeign) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%w; publishing or pulling the version again repairs it, and until then nothing is removed", err)
		}
		own[e.desc.Digest] = true
		p.versions = append(p.versions, v)
		if len(e.tags) > 0 {
			roots = append(roots, v.Digest)
		}
	}
	roots = append(roots, o.Keep...)
	roots = append(roots, last(p.versions, o.KeepLast)...)
	for _, d := range index.Manifests {
		if own[d.Digest] {
			continue
		}
		if err := s.reach(ctx, d, p.blobs); err != nil {
			return nil, fmt.Errorf("%s, which another program has put there: %w", d.Digest, err)
		}
	}
	at := map[string]Version{}
	for _, v := range p.versions {
		at[v.Digest] = v
		// A signature, or an index of several artefacts.
		if p.blobs[digest.Digest(v.Digest)] {
			roots = append(roots, v.Digest)
		}
	}
	mark(at, roots, p.keep)
	if !o.Before.IsZero() {
		var young []string
		for _, v := range p.versions {
			if !v.Published.Before(o.Before) {
				young = append(young, v.Digest)
			}
		}
		needed := maps.Clone(p.keep)
		mark(at, young, p.keep)
		for d := range p.keep {
			p.recent[d] = !needed[d]
		}
	}
	for _, v := range p.versions {
		if !p.keep[v.Digest] {
			continue
		}
		p.blobs[digest.Digest(v.Digest)] = true
		p.blobs[v.configDigest] = true
		for _, f := range v.Files {
			p.blobs[f.desc.Digest] = true
		}
	}
	return p, nil
}

// mark adds versions and all that they were made from.
func mark(at map[string]Version, todo []string, keep map[string]bool) {
	todo = slices.Clone(todo)
	for len(todo) > 0 {
		d := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		v, ok := at[d]
		if !ok || keep[d] {
			continue
		}
		keep[d] = true
		todo = append(todo, v.Manifest.Parents...)
	}
}

// last returns the n versions of each name that were published last; of those without a date or
// with the same one, the index has the later ones later.
func last(versions []Version, n int) []string {
	byName := map[string][]Version{}
	for _, v := range versions {
		byName[v.Manifest.Name] = append(byName[v.Manifest.Name], v)
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		of := byName[name]
		slices.SortStableFunc(of, func(a, b Version) int { return a.Published.Compare(b.Published) })
		for _, v := range of[max(0, len(of)-n):] {
			list = append(list, v.Digest)
		}
	}
	return list
}

// reach adds the blobs that an artefact of another program consists of, as far as the store has
// them.
func (s *Store) reach(ctx context.Context, root ocispec.Descriptor, seen map[digest.Digest]bool) error {
	todo := []ocispec.Descriptor{root}
	for len(todo) > 0 {
		d := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[d.Digest] {
			continue
		}
		seen[d.Digest] = true
		if d.Digest.Algorithm() != digest.SHA256 {
			continue
		}
		if _, err := os.Stat(s.blobPath(d.Digest)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		next, err := s.successors(ctx, d)
		if err != nil {
			return err
		}
		for _, n := range next {
			if err := checkDescriptor(n); err == nil {
				todo = append(todo, n)
			}
		}
	}
	return nil
}

// Media types of what other programs put into an image layout and that names other blobs.
const (
	dockerManifest   = "application/vnd.docker.distribution.manifest.v2+json"
	dockerList       = "application/vnd.docker.distribution.manifest.list.v2+json"
	artifactManifest = "application/vnd.oci.artifact.manifest.v1+json"
)

// successors returns what a blob names, by its media type.
func (s *Store) successors(ctx context.Context, d ocispec.Descriptor) ([]ocispec.Descriptor, error) {
	switch d.MediaType {
	case ocispec.MediaTypeImageManifest, ocispec.MediaTypeImageIndex, dockerManifest, dockerList, artifactManifest:
	default:
		return nil, nil
	}
	text, err := fetchAll(ctx, blobSource{s}.Fetch, d)
	if err != nil {
		return nil, err
	}
	var m struct {
		Subject, Config          *ocispec.Descriptor
		Layers, Manifests, Blobs []ocispec.Descriptor
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	next := slices.Concat(m.Layers, m.Manifests, m.Blobs)
	for _, one := range []*ocispec.Descriptor{m.Subject, m.Config} {
		if one != nil {
			next = append(next, *one)
		}
	}
	return next, nil
}

// sweep removes the blobs that are not kept. Nothing else in the folder is touched.
func (s *Store) sweep(ctx context.Context, keep map[digest.Digest]bool, o CollectOptions) (blobs int, bytes int64, err error) {
	list, err := os.ReadDir(s.blobDir())
	if err != nil {
		return 0, 0, err
	}
	for _, e := range list {
		if err := ctx.Err(); err != nil {
			return blobs, bytes, err
		}
		d := digest.NewDigestFromEncoded(digest.SHA256, e.Name())
		if d.Validate() != nil || keep[d] || !e.Type().IsRegular() {
			continue
		}
		st, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return blobs, bytes, err
		}
		if !o.Before.IsZero() && !st.ModTime().Before(o.Before) {
			continue
		}
		if !o.DryRun {
			if err := s.disk.RemoveAll(filepath.Join(s.blobDir(), e.Name())); err != nil {
				return blobs, bytes, err
			}
		}
		blobs++
		bytes += st.Size()
	}
	if blobs > 0 && !o.DryRun {
		err = s.disk.SyncDir(s.blobDir())
	}
	return blobs, bytes, err
}
