package artifact

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// Source is a place that versions come from: a repository of a registry, which package registry
// opens, object storage or another image layout. Where it does not have something, the
// error is an [ErrNotFound], see [NotFound].
type Source interface {
	// Fetch opens the content of a descriptor. The caller compares it with its digest.
	Fetch(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error)
	// Resolve returns the descriptor of a tag or digest.
	Resolve(ctx context.Context, ref string) (ocispec.Descriptor, error)
}

// Target is a place that versions are copied to. Its methods are safe for concurrent use.
type Target interface {
	Source
	// Exists reports whether the content is there.
	Exists(ctx context.Context, d ocispec.Descriptor) (bool, error)
	// Push takes content; that it is there already is no error.
	Push(ctx context.Context, d ocispec.Descriptor, r io.Reader) error
	// Tag lets a tag stand for an image manifest that is there.
	Tag(ctx context.Context, d ocispec.Descriptor, tag string) error
}

// NotFound makes an error of a [Source] an [ErrNotFound]. Its text stays.
func NotFound(err error) error { return absentError{err} }

type absentError struct{ error }

func (absentError) Is(target error) bool { return target == ErrNotFound }

func (e absentError) Unwrap() error { return e.error }

// sentAtOnce is the number of files of a version that are sent at a time.
const sentAtOnce = 3

// DefaultMaxBytes is the largest version that is pulled when nothing else is said.
const DefaultMaxBytes = 64 << 30

// Progress is how far a file of a version has come.
type Progress struct {
	// Version is the digest of the version, Title the file's, "manifest" and "image manifest" for
	// the two descriptions.
	Version, Title string
	// Done of Size bytes have been transferred. Skipped says that the receiver had the file.
	Done, Size int64
	Skipped    bool
}

// PushOptions say what is sent beside a version.
type PushOptions struct {
	// Tags are moved to the version once it is there as a whole.
	Tags []string
	// Lineage sends the versions that this one was made from first, as far as the store has them,
	// so that it never arrives without them. They have no tags. Those that it does not have are
	// looked up in Others, in order.
	Lineage bool
	Others  []*Store
	// Progress is called as bytes go; never by two goroutines at once. It may be nil.
	Progress func(Progress)
}

// Push copies a version to a registry or another image layout, without what is there already, so
// one that was interrupted goes on with the next file. What arrives has the same digest. It returns
// how many versions were sent or found there.
func (s *Store) Push(ctx context.Context, ref string, to Target, o PushOptions) (Version, int, error) {
	v, n, err := s.push(ctx, ref, to, o)
	switch {
	case err == nil:
		return v, n, nil
	case v.Digest != "":
		ref = v.String()
	}
	return v, n, fmt.Errorf("push %s: %w", ref, err)
}

func (s *Store) push(ctx context.Context, ref string, to Target, o PushOptions) (Version, int, error) {
	for _, t := range o.Tags {
		if err := CheckAlias(t); err != nil {
			return Version{}, 0, fmt.Errorf("tag: %w", err)
		}
	}
	line, err := s.Lineage(ref, o.Others...)
	if err != nil {
		return Version{}, 0, err
	}
	if !o.Lineage {
		line = line[:1]
	}
	v := *line[0].Version
	n := 0
	// The oldest first: where this ends early, every version that is there has its ancestors.
	for _, a := range slices.Backward(line) {
		if a.Version == nil {
			continue
		}
		if err := pushOne(ctx, *a.Version, to, o.Progress); err != nil {
			if a.Depth > 0 {
				err = fmt.Errorf("ancestor %s: %w", a.Version, err)
			}
			return v, n, err
		}
		n++
	}
	for _, t := range o.Tags {
		if err := to.Tag(ctx, v.descriptor(), t); err != nil {
			return v, n, fmt.Errorf("tag %s: %w", t, err)
		}
	}
	return v, n, nil
}

// descriptor is that of the image manifest.
func (v Version) descriptor() ocispec.Descriptor {
	d := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: ArtifactType, Digest: digest.Digest(v.Digest), Size: v.size}
	if !v.HasModel() {
		d.ArtifactType = DataArtifactType
	}
	return d
}

func pushOne(ctx context.Context, v Version, to Target, report func(Progress)) error {
	m := newMeter(v, report)
	image := v.descriptor()
	if there, err := to.Exists(ctx, image); err != nil {
		return err
	} else if there {
		// The receiver has the whole version.
		for _, d := range m.order {
			m.add(d, d.Size, true)
		}
		return nil
	}
	from := meteredSource{blobSource{v.store}, m}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(sentAtOnce)
	seen := map[digest.Digest]bool{image.Digest: true}
	for _, d := range m.order {
		if !seen[d.Digest] {
			seen[d.Digest] = true
			group.Go(func() error {
				if there, err := to.Exists(within, d); err != nil {
					return err
				} else if there {
					m.add(d, d.Size, true)
					return nil
				}
				return send(within, from, to, d)
			})
		}
	}
	// The image manifest comes last, so nobody sees a part of a version.
	if err := group.Wait(); err != nil {
		return err
	}
	return send(ctx, from, to, image)
}

// send copies the content of a descriptor.
func send(ctx context.Context, from meteredSource, to Target, d ocispec.Descriptor) error {
	r, err := from.Fetch(ctx, d)
	if err != nil {
		return err
	}
	defer r.Close() // It was read only, and whoever took it may have closed it.
	return to.Push(ctx, d, r)
}

// PullOptions say what is made of a version that is received.
type PullOptions struct {
	// Name is what the version must be called; empty takes every name.
	Name string
	// Aliases are moved to the version.
	Aliases []string
	// Lineage fetches the versions that this one was made from as well, as far as the source has
	// them.
	Lineage bool
	// MaxBytes is the largest accepted sum of a version's files, DefaultMaxBytes when 0.
	MaxBytes int64
	// Progress is called as bytes come. It may be nil.
	Progress func(Progress)
}

// Pull copies a version, by tag or digest, from a registry or another image layout. Every file is
// compared with its digest before the version is listed, and each that has arrived is kept, so a
// pull that was interrupted goes on with the next file. The version has the digest that it has
// there. It returns the number of versions that were received or found here.
func (s *Store) Pull(ctx context.Context, from Source, ref string, o PullOptions) (Version, int, error) {
	v, n, err := s.pull(ctx, from, ref, o)
	if err != nil {
		return v, n, fmt.Errorf("pull %s: %w", ref, err)
	}
	return v, n, nil
}

func (s *Store) pull(ctx context.Context, from Source, ref string, o PullOptions) (Version, int, error) {
	if err := s.alive(); err != nil {
		return Version{}, 0, err
	}
	for _, a := range o.Aliases {
		if err := CheckAlias(a); err != nil {
			return Version{}, 0, err
		}
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	desc, err := from.Resolve(ctx, ref)
	if err != nil {
		return Version{}, 0, err
	}
	first, err := describeRemote(ctx, from, desc, o)
	if err != nil {
		return Version{}, 0, err
	}
	if o.Name != "" && first.manifest.Name != o.Name {
		return Version{}, 0, fmt.Errorf("it is a version of %s, expected one of %s; the name is part of what the digest covers", first.manifest.Name, o.Name)
	}
	// Parents are known once their children are, and listed before them.
	line, seen := []*remoteVersion{first}, map[string]bool{desc.Digest.String(): true}
	for i := 0; o.Lineage && i < len(line); i++ {
		for _, d := range line[i].manifest.Parents {
			if seen[d] {
				continue
			}
			seen[d] = true
			desc, err := from.Resolve(ctx, d)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			var parent *remoteVersion
			if err == nil {
				parent, err = describeRemote(ctx, from, desc, o)
			}
			if err != nil {
				return Version{}, 0, fmt.Errorf("parent %s: %w", Short(d), err)
			}
			line = append(line, parent)
		}
	}
	n := 0
	for _, r := range slices.Backward(line) {
		var aliases []string
		if r == first {
			aliases = o.Aliases
		}
		if err := s.receive(ctx, from, r, aliases, o.Progress); err != nil {
			if r != first {
				err = fmt.Errorf("parent %s: %w", Short(r.image.Digest.String()), err)
			}
			return Version{}, n, err
		}
		n++
	}
	v, err := s.Resolve(first.image.Digest.String())
	return v, n, err
}

// remoteVersion is a version elsewhere, whose descriptions have been read and checked.
type remoteVersion struct {
	image, config         ocispec.Descriptor
	imageText, configText []byte
	manifest              *Manifest
	files                 []File
}

// describeRemote reads the two descriptions of a version. Sizes and titles come from strangers:
// nothing is allocated or written for a number that is merely claimed.
func describeRemote(ctx context.Context, from Source, desc ocispec.Descriptor, o PullOptions) (*remoteVersion, error) {
	if err := checkDescriptor(desc); err != nil {
		return nil, err
	}
	if desc.MediaType != ocispec.MediaTypeImageManifest {
		return nil, fmt.Errorf("%s is of type %q: %w", desc.Digest, desc.MediaType, errForeign)
	}
	r := &remoteVersion{image: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: desc.Digest, Size: desc.Size}}
	var err error
	if r.imageText, err = fetchSmall(ctx, from, r.image, maxImageManifest); err != nil {
		return nil, fmt.Errorf("image manifest: %w", err)
	}
	image, err := decodeImage(r.imageText)
	if err != nil {
		return nil, err
	}
	r.image.ArtifactType = image.ArtifactType
	if r.files, err = filesOf(image); err != nil {
		return nil, fmt.Errorf("image manifest: %w", err)
	}
	r.config = image.Config
	if r.configText, err = fetchSmall(ctx, from, r.config, maxConfig); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if r.manifest, err = decodeManifest(r.configText); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if err := r.manifest.checkFiles(r.files); err != nil {
		return nil, err
	}
	total := int64(0)
	for _, f := range r.files {
		if f.Size > math.MaxInt64-total {
			total = math.MaxInt64
			break
		}
		total += f.Size
	}
	if total > o.MaxBytes {
		return nil, fmt.Errorf("its files have %d bytes, expected at most %d", total, o.MaxBytes)
	}
	return r, nil
}

func fetchSmall(ctx context.Context, from Source, d ocispec.Descriptor, limit int64) ([]byte, error) {
	if d.Size > limit {
		return nil, fmt.Errorf("blob %s: %d bytes, expected at most %d", d.Digest, d.Size, limit)
	}
	return fetchAll(ctx, from.Fetch, d)
}

// fetchAll reads the content of a descriptor, whose size is the caller's to limit, and compares it
// with its digest.
func fetchAll(ctx context.Context, fetch func(context.Context, ocispec.Descriptor) (io.ReadCloser, error), d ocispec.Descriptor) ([]byte, error) {
	r, err := fetch(ctx, d)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// No more than one byte too many: the source may not end.
	b, err := io.ReadAll(io.LimitReader(r, d.Size+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("blob %s: %w", d.Digest, err)
	case int64(len(b)) != d.Size:
		return nil, fmt.Errorf("blob %s: its source does not have the %d bytes that it is said to have", d.Digest, d.Size)
	case digest.FromBytes(b) != d.Digest:
		return nil, fmt.Errorf("blob %s: its source is not what it is said to be and has digest %s", d.Digest, digest.FromBytes(b))
	}
	return b, nil
}

// receive fetches the files of a version and lists it.
func (s *Store) receive(ctx context.Context, from Source, r *remoteVersion, aliases []string, report func(Progress)) error {
	m := newMeter(Version{Digest: r.image.Digest.String(), Files: r.files, size: r.image.Size, config: r.config.Size, configDigest: r.config.Digest}, report)
	var blobs []blob
	for _, f := range r.files {
		blobs = append(blobs, blob{desc: f.desc, open: func() (io.ReadCloser, error) {
			rc, err := from.Fetch(ctx, f.desc)
			if err != nil {
				return nil, err
			}
			return m.reader(f.desc, rc), nil
		}})
	}
	config, image := blobOf(ConfigType, "", r.configText), blobOf(ocispec.MediaTypeImageManifest, "", r.imageText)
	image.desc.ArtifactType = r.image.ArtifactType
	// Each file gets its name when it is whole, so that it need not be fetched again after an
	// interruption.
	for _, b := range blobs {
		if err := s.keep(ctx, b, m); err != nil {
			return err
		}
	}
	if err := (Version{Digest: r.image.Digest.String(), Manifest: *r.manifest, Files: r.files, store: s}).checkContent(); err != nil {
		return err
	}
	if err := s.publishBlobs(ctx, append(blobs, config, image), func(index *ocispec.Index) { s.list(index, image.desc, r.manifest.Name, aliases) }); err != nil {
		return err
	}
	m.add(r.config, r.config.Size, false)
	m.add(r.image, r.image.Size, false)
	return nil
}

// keep writes one blob, durably, where the store does not hold it intact.
func (s *Store) keep(ctx context.Context, b blob, m *meter) (err error) {
	staged := map[string]*staged{}
	if err := s.stageMissing(ctx, []blob{b}, staged); err != nil {
		return err
	}
	st := staged[b.desc.Digest.String()]
	if st == nil {
		m.add(b.desc, b.desc.Size, true)
		return nil
	}
	defer func() { err = errors.Join(err, s.unstage(st)) }()
	release, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	return s.settle(st)
}

// CopyFrom is [Store.Pull] from another store on this machine, by a reference without a store.
func (s *Store) CopyFrom(ctx context.Context, from *Store, ref string, o PullOptions) (Version, error) {
	v, _, err := s.Pull(ctx, storeSource{blobSource{from}}, ref, o)
	return v, err
}

// storeSource shows the versions of a store by their references.
type storeSource struct{ blobSource }

// Resolve implements Source.
func (s storeSource) Resolve(_ context.Context, ref string) (ocispec.Descriptor, error) {
	v, err := s.s.Resolve(ref)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	return v.descriptor(), nil
}

// blobSource shows the blobs of a store.
type blobSource struct{ s *Store }

// Fetch opens a blob. The reader ends with an error where the content does not have its digest.
func (b blobSource) Fetch(_ context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	f, err := b.s.openBlob(d)
	if err != nil {
		return nil, err
	}
	return &checkedReader{file: f, sum: newSum(io.Discard), want: d.Digest, path: f.Name()}, nil
}

// checkedReader compares what was read with a digest at the end.
type checkedReader struct {
	file io.ReadCloser
	sum  *sum
	want digest.Digest
	path string
}

func (r *checkedReader) Read(p []byte) (int, error) {
	n, err := r.file.Read(p)
	r.sum.Write(p[:n])
	if err == io.EOF {
		if got := r.sum.digest(); got != r.want {
			return n, &DamageError{Blob: r.want.String(), Path: r.path, Got: got.String()}
		}
	}
	return n, err
}

func (r *checkedReader) Close() error { return r.file.Close() }

// meter adds up what is transferred of a version.
type meter struct {
	report  func(Progress)
	version string
	order   []ocispec.Descriptor
	mu      sync.Mutex
	titles  map[digest.Digest]string
	done    map[digest.Digest]int64
}

func newMeter(v Version, report func(Progress)) *meter {
	m := &meter{report: report, version: v.Digest, titles: map[digest.Digest]string{}, done: map[digest.Digest]int64{}}
	know := func(d ocispec.Descriptor, title string) {
		m.order = append(m.order, d)
		m.titles[d.Digest] = title
	}
	for _, f := range v.Files {
		know(f.desc, f.Title)
	}
	know(ocispec.Descriptor{MediaType: ConfigType, Digest: v.configDigest, Size: v.config}, "manifest")
	know(ocispec.Descriptor{Digest: digest.Digest(v.Digest), Size: v.size}, "image manifest")
	return m
}

func (m *meter) add(d ocispec.Descriptor, n int64, skipped bool) {
	if m.report == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.done[d.Digest] += n
	m.report(Progress{Version: m.version, Title: m.titles[d.Digest], Done: m.done[d.Digest], Size: d.Size, Skipped: skipped})
}

func (m *meter) reader(d ocispec.Descriptor, r io.ReadCloser) io.ReadCloser {
	// A transfer that is tried again begins again.
	m.mu.Lock()
	m.done[d.Digest] = 0
	m.mu.Unlock()
	return &meteredReader{ReadCloser: r, m: m, d: d}
}

type meteredReader struct {
	io.ReadCloser
	m *meter
	d ocispec.Descriptor
}

func (r *meteredReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if n > 0 {
		r.m.add(r.d, int64(n), false)
	}
	return n, err
}

type meteredSource struct {
	blobSource
	m *meter
}

func (s meteredSource) Fetch(ctx context.Context, d ocispec.Descriptor) (io.ReadCloser, error) {
	r, err := s.blobSource.Fetch(ctx, d)
	if err != nil {
		return nil, err
	}
	return s.m.reader(d, r), nil
}
