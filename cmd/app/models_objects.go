package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

const objectsHelp = `A storage is a URL: s3://BUCKET/PREFIX of Amazon S3 or, with ?endpoint=https://HOST:PORT, of another storage with its protocol,
or file:///DIRECTORY. Credentials are found where AWS's own tools find them, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY;
a URL has none.`

// objectsAt opens the store of a URL, and returns what stands behind its "#".
func objectsAt(ctx context.Context, s string, o objects.Options) (store *objects.Store, at, name string, err error) {
	at, name, _ = strings.Cut(s, "#")
	if name, err = url.PathUnescape(name); err != nil {
		return nil, "", "", fmt.Errorf("%s: what stands behind # cannot be read", objects.Redact(at))
	}
	store, err = objects.Open(ctx, at, o)
	return store, at, name, err
}

// treeTag is the key of the tag of a directory.
func treeTag(name string) string { return path.Join("trees", name) }

// treeDoc is a directory or file that was sent or received, as JSON.
type treeDoc struct {
	// Reference is what documents and commands take in place of a path.
	Reference string `json:"reference"`
	URL       string `json:"url"`
	Digest    string `json:"digest"`
	Tag       string `json:"tag"`
	// Path is what it was sent from, or is.
	Path string `json:"path"`
	objects.Stats
}

// carried says what went over the line.
func (d treeDoc) carried() string {
	if d.Repaired > 0 {
		return fmt.Sprintf("%s, %s sent, of which %d were damaged there; %s there already", plural(int(d.Sent), "object"), byteCount(d.SentBytes), d.Repaired, plural(int(d.Skipped), "object"))
	}
	if d.Sent > 0 || d.Skipped > 0 {
		return fmt.Sprintf("%s, %s sent; %s there already", plural(int(d.Sent), "object"), byteCount(d.SentBytes), plural(int(d.Skipped), "object"))
	}
	return fmt.Sprintf("%s, %s received; %s in the cache", plural(int(d.Received), "object"), byteCount(d.ReceivedBytes), plural(int(d.Cached), "object"))
}

// treeBar shows the bytes of a tree as they go, from the first on.
func (a *app) treeBar(label string, total int64) (add func(int64), end func()) {
	start := sync.OnceValue(func() *progress.Progress {
		return progress.Start(a.err, progress.Options{Label: label, Unit: progress.Bytes, Total: total, Quiet: a.quiet})
	})
	begun := atomic.Bool{}
	add = func(n int64) {
		begun.Store(true)
		start().Add(n)
	}
	return add, func() {
		if begun.Load() {
			start().Finish()
		}
	}
}

// pushTree sends a directory or a file to a storage.
func (a *app) pushTree(ctx context.Context, from, to string, verify bool) error {
	count := func(int64) {}
	s, at, name, err := objectsAt(ctx, to, objects.Options{Verify: verify, Progress: func(n int64) { count(n) }})
	if err != nil {
		return err
	}
	defer s.Close()
	var end func()
	count, end = a.treeBar("push", 0)
	d, err := s.PutTree(ctx, from)
	end()
	if err == nil && name != "" {
		err = s.SetTag(ctx, treeTag(name), []byte(d))
	}
	if err != nil {
		return err
	}
	doc := treeDoc{Reference: objects.Reference{URL: at, Tree: d}.String(), URL: at, Digest: string(d), Tag: name, Path: from, Stats: s.Stats()}
	if a.json {
		return a.printJSON(doc)
	}
	_, err = fmt.Fprintf(a.out, "%s is\n%s\n(%s)\n", from, doc.Reference, doc.carried())
	return err
}

// pullTree makes a directory what a reference or a tag names.
func (a *app) pullTree(ctx context.Context, from, to string, most int64) error {
	cache, err := objects.LocalCache()
	if err != nil {
		return err
	}
	count := func(int64) {}
	s, at, name, err := objectsAt(ctx, from, objects.Options{Cache: cache, MaxBytes: most, Progress: func(n int64) { count(n) }})
	if err != nil {
		return err
	}
	defer s.Close()
	d := objects.Digest(name)
	tag := ""
	if d.Check() != nil {
		if name == "" || strings.HasPrefix(name, "sha256:") {
			return fmt.Errorf("%s#%s: expected #sha256:… of a directory, or #TAG", objects.Redact(at), name)
		}
		tag = name
		text, err := s.Tag(ctx, treeTag(name))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s has no directory with tag %q", objects.Redact(at), name)
		}
		if err != nil {
			return err
		}
		d = objects.Digest(text)
	}
	var end func()
	count, end = a.treeBar("pull", 0)
	err = s.GetTree(ctx, d, to)
	end()
	if err != nil {
		return err
	}
	doc := treeDoc{Reference: objects.Reference{URL: at, Tree: d}.String(), URL: at, Digest: string(d), Tag: tag, Path: to, Stats: s.Stats()}
	if a.json {
		return a.printJSON(doc)
	}
	_, err = fmt.Fprintf(a.out, "%s is %s (%s)\n", to, d, doc.carried())
	return err
}

// place is a registry's repository, or a storage's, that versions are copied to or from.
type place struct {
	artifact.Target
	// doc says where it is, and there the same for people, without a tag.
	doc   transferDoc
	there string
	// tag joins there and a tag: ":" or "#".
	tag string
	// name is the tag or digest, empty where there is none.
	name    string
	explain func(error) error
	close   func() error
	// repaired is how many damaged objects were written again.
	repaired func() int64
}

// openPlace opens what the last argument of push and pull names.
func (f *registryFlags) openPlace(cmd *cobra.Command, a *app, s string, verify bool) (*place, error) {
	if objects.IsURL(s) {
		if f.plain || f.username != "" || f.password {
			return nil, errors.New("--plain-http, --username and --password-stdin are for registries; " + objects.Redact(s) + " is a storage")
		}
		return openObjects(cmd.Context(), s, verify)
	}
	if verify {
		return nil, errors.New("--verify is for storages; a registry verifies what it has")
	}
	repo, name, err := f.open(cmd, a, s)
	if err != nil {
		return nil, err
	}
	r := repo.Reference
	return &place{Target: repo, doc: transferDoc{Registry: r.Registry, Repository: r.Repository}, there: repo.Name(), tag: ":", name: name,
		explain: repo.Explain, close: func() error { return nil }, repaired: func() int64 { return 0 }}, nil
}

// openObjects opens a storage as a place of versions.
func openObjects(ctx context.Context, s string, verify bool) (*place, error) {
	store, at, name, err := objectsAt(ctx, s, objects.Options{Verify: verify})
	if err != nil {
		return nil, err
	}
	return &place{Target: artifact.ObjectStorage(store), doc: transferDoc{URL: at}, there: at, tag: "#", name: name, close: store.Close, repaired: func() int64 { return store.Stats().Repaired }, explain: func(err error) error {
		if err == nil {
			return nil
		}
		if text, other := store.Get(ctx, objects.Digest(name)); other == nil && isTree(text) {
			return fmt.Errorf("%s is a directory; give --out, where it is to be", name)
		}
		return err
	}}, nil
}

// isTree reports whether a blob is the list of a directory.
func isTree(text []byte) bool {
	var t struct{ Kind string }
	return json.Unmarshal(text, &t) == nil && t.Kind == "onnxrl.tree.v1"
}

// localObjects has references fetched as the flags of this program say.
func (a *app) localObjects(ctx context.Context) {
	objects.SetLocal(objects.LocalOptions{Context: ctx, Begin: func(r objects.Reference, bytes int64) (func(int64), func()) {
		return a.treeBar("fetch "+objects.Redact(r.URL), bytes)
	}})
}

// objectsCache keeps what is fetched from storages. Where it cannot be opened, on a machine without
// a home for instance, nothing is kept, which is no reason not to work.
func (a *app) objectsCache() *objects.Cache {
	cache, err := objects.LocalCache()
	if err != nil {
		a.say("note: nothing is kept of what is fetched: %v", err)
		return nil
	}
	return cache
}

// isThere reports whether there is a file or directory of that name.
func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
