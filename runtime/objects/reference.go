package objects

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// Reference names a tree in a storage, or a file in it: URL#sha256:HEX or URL#sha256:HEX/PATH.
// What it names never changes.
type Reference struct {
	// URL is the store's.
	URL  string
	Tree Digest
	// Path is slash-separated and relative to the tree, empty for the tree itself. It may be a
	// pattern.
	Path string
}

// ParseReference reads a reference. Errors show the URL as [Redact] leaves it.
func ParseReference(s string) (Reference, error) {
	at, name, ok := strings.Cut(s, "#")
	r := Reference{URL: at}
	if _, err := parseURL(at); err != nil {
		return r, err
	}
	if !ok {
		return r, fmt.Errorf("%s does not say what of it is meant; expected URL#sha256:… of a tree, optionally with /PATH of a file in it", Redact(at))
	}
	digest, path, below := strings.Cut(name, "/")
	r.Tree, r.Path = Digest(digest), path
	if err := r.Tree.Check(); err != nil {
		return r, fmt.Errorf("reference into %s: %w", Redact(at), err)
	}
	if below && (!fs.ValidPath(path) || path == "." || !filepath.IsLocal(filepath.FromSlash(path))) {
		return r, fmt.Errorf("reference into %s: path %q: expected one below the tree", Redact(at), path)
	}
	return r, nil
}

func (r Reference) String() string {
	s := r.URL + "#" + string(r.Tree)
	if r.Path != "" {
		s += "/" + r.Path
	}
	return s
}
