package objects

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// hubPrefix begins the name of a data set of the Hub of Hugging Face, as its own programs write it:
// hf://datasets/OWNER/NAME, hf://datasets/OWNER/NAME@REVISION, and /PATH behind either.
const hubPrefix = "hf://datasets/"

// Environment variables of Hugging Face's own programs: where the Hub is, and who asks.
const (
	hubEndpointVariable = "HF_ENDPOINT"
	hubTokenVariable    = "HF_TOKEN"
)

// hubFiles are how files end that are fetched: tables, and the README.md that says which they are.
var hubFiles = []string{".csv", ".csv.gz", ".txt", ".tsv", ".parquet", ".pq", ".arrow", ".feather", ".ipc", "README.md"}

// hubName is a data set at a revision.
type hubName struct{ repository, revision, path string }

var hubParts = regexp.MustCompile(`^([\w.-]+/[\w.-]+)(?:@([^/]+))?(?:/(.*))?$`)

func parseHub(s string) (hubName, error) {
	m := hubParts.FindStringSubmatch(strings.TrimPrefix(s, hubPrefix))
	if m == nil {
		return hubName{}, fmt.Errorf("%q: expected hf://datasets/OWNER/NAME, with @REVISION and /PATH where they are meant", s)
	}
	n := hubName{m[1], m[2], strings.TrimSuffix(m[3], "/")}
	if n.revision == "" {
		n.revision = "main"
	}
	// The Hub's programs write refs/convert/parquet with its slashes escaped.
	revision, err := url.PathUnescape(n.revision)
	if err != nil {
		return n, fmt.Errorf("%q: the revision %q cannot be read", s, n.revision)
	}
	n.revision = revision
	if n.path != "" && !filepath.IsLocal(filepath.FromSlash(n.path)) {
		return n, fmt.Errorf("%q: the path %q: expected one below the data set", s, n.path)
	}
	return n, nil
}

// hubFile is a file as the Hub lists it.
type hubFile struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Size int64  `json:"size"`
	OID  string `json:"oid"` // Git's SHA-1 of a blob
	LFS  *struct {
		OID string `json:"oid"` // SHA-256
	} `json:"lfs"`
}

// digest is the name of the content, and what computes it.
func (f hubFile) digest() (string, hash.Hash) {
	if f.LFS != nil {
		return f.LFS.OID, sha256.New()
	}
	h := sha1.New()
	fmt.Fprintf(h, "blob %d\x00", f.Size)
	return f.OID, h
}

// hub fetches from the Hub, or what speaks its protocol at HF_ENDPOINT. The token goes to no other
// host.
type hub struct {
	source
	ctx      context.Context
	endpoint string
	token    string
	ask      Getter
}

// Answer is a server's answer to a request.
type Answer struct {
	Code   int    // such as 404
	Status string // such as "404 Not Found"
	Link   string // the header of that name
	Body   io.ReadCloser
}

// Getter asks for a URL, with the token, unless it is empty, as that of a bearer. The token goes to no
// other host. It is safe for concurrent use.
type Getter func(ctx context.Context, url, token string) (*Answer, error)

var getter Getter

// RegisterGetter sets how data sets of the Hub are fetched. Package web does so when it is imported.
func RegisterGetter(g Getter) { getter = g }

func newHub(ctx context.Context) (*hub, error) {
	if getter == nil {
		return nil, errors.New("this program cannot fetch data sets of the Hub: it does not import package runtime/objects/web")
	}
	h := &hub{ask: getter, ctx: ctx, endpoint: strings.TrimSuffix(os.Getenv(hubEndpointVariable), "/"), token: os.Getenv(hubTokenVariable)}
	if h.endpoint == "" {
		h.endpoint = "https://huggingface.co"
	}
	if u, err := url.Parse(h.endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, fmt.Errorf("%s: expected a URL such as https://huggingface.co", hubEndpointVariable)
	}
	h.source = source{attempts: DefaultAttempts, stats: &counters{}, sleep: sleep}
	return h, nil
}

// get asks for a URL of the endpoint, as often as it takes, and gives what comes to use.
func (h *hub) get(what, at string, use func(*Answer) error) error {
	return h.retry(h.ctx, what, func() (bool, error) {
		r, err := h.ask(h.ctx, at, h.token)
		if err != nil {
			return false, err
		}
		defer r.Body.Close()
		switch {
		case r.Code == 200:
			return false, use(r)
		case r.Code == 401 || r.Code == 403:
			return false, Final(fmt.Errorf("%s: there is no such data set, or it is for those who have a token (%s) and have accepted its terms", r.Status, hubTokenVariable))
		case r.Code == 404:
			return false, Final(fmt.Errorf("%s: there is no such data set, or no such revision or file", r.Status))
		case r.Code < 500 && r.Code != 429 && r.Code != 408:
			return false, Final(errors.New(r.Status))
		}
		return false, errors.New(r.Status)
	})
}

// maxListing bounds what the Hub says about files, in bytes.
const maxListing = 64 << 20

func readJSON(r *Answer, to any) error {
	text, err := io.ReadAll(io.LimitReader(r.Body, maxListing))
	if err == nil {
		if err = json.Unmarshal(text, to); err != nil {
			err = Final(fmt.Errorf("what the Hub says cannot be read: %w", err))
		}
	}
	return err
}

// commit is what a revision stands for now.
func (h *hub) commit(n hubName) (string, error) {
	var info struct {
		SHA string `json:"sha"`
	}
	err := h.get("ask for the revision "+n.revision, h.endpoint+"/api/datasets/"+n.repository+"/revision/"+url.PathEscape(n.revision), func(r *Answer) error { return readJSON(r, &info) })
	if err == nil && !isHex(info.SHA, 40) {
		err = fmt.Errorf("the revision %s is %q, expected a commit", n.revision, info.SHA)
	}
	return info.SHA, err
}

func isHex(s string, n int) bool { return len(s) == n && strings.Trim(s, "0123456789abcdef") == "" }

// list gives the files of a commit that are tables or say which they are.
func (h *hub) list(n hubName, commit string) (files []hubFile, err error) {
	at := h.endpoint + "/api/datasets/" + n.repository + "/tree/" + commit + "?recursive=true"
	for at != "" {
		next := ""
		err := h.get("list the files", at, func(r *Answer) error {
			var page []hubFile
			if err := readJSON(r, &page); err != nil {
				return err
			}
			files = append(files, page...)
			next = nextPage(r.Link)
			return nil
		})
		if err != nil {
			return nil, err
		}
		if next != "" && !strings.HasPrefix(next, h.endpoint+"/") {
			return nil, fmt.Errorf("list the files: the next page is on another host")
		}
		at = next
	}
	for _, f := range files {
		name, _ := f.digest()
		if f.Type == "file" && (!filepath.IsLocal(filepath.FromSlash(f.Path)) || f.Size < 0 || !isHex(name, 40) && !isHex(name, 64)) {
			return nil, fmt.Errorf("list the files: %q with the digest %q is no file of a data set", f.Path, name)
		}
	}
	return slices.DeleteFunc(files, func(f hubFile) bool {
		return f.Type != "file" || !slices.ContainsFunc(hubFiles, func(end string) bool { return strings.HasSuffix(f.Path, end) })
	}), nil
}

var nextLink = regexp.MustCompile(`<([^>]*)>; *rel="?next"?`)

func nextPage(link string) string {
	if m := nextLink.FindStringSubmatch(link); m != nil {
		return m[1]
	}
	return ""
}

// fetch puts a file into the directory of blobs, under its digest, unless it is there.
func (h *hub) fetch(n hubName, commit string, f hubFile, blobs string) (string, error) {
	name, _ := f.digest()
	blob := filepath.Join(blobs, name)
	if got, err := f.digestOf(blob); err == nil && got == name {
		return blob, nil
	}
	escaped := make([]string, 0, 4)
	for _, part := range strings.Split(f.Path, "/") {
		escaped = append(escaped, url.PathEscape(part))
	}
	err := h.get("fetch "+f.Path, h.endpoint+"/datasets/"+n.repository+"/resolve/"+commit+"/"+strings.Join(escaped, "/"), func(r *Answer) error {
		return atomicfile.WriteFile(blob, func(w io.Writer) error {
			_, sum := f.digest()
			size, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(r.Body, f.Size+1))
			if got := hex.EncodeToString(sum.Sum(nil)); err == nil && got != name {
				err = fmt.Errorf("%w: %d bytes with the digest %s came, expected %d with %s", ErrDamaged, size, got, f.Size, name)
			}
			return err
		})
	})
	return blob, err
}

// digestOf is the digest of a file on this machine.
func (f hubFile) digestOf(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	_, sum := f.digest()
	_, err = io.Copy(sum, in)
	return hex.EncodeToString(sum.Sum(nil)), err
}

// hubPath returns the copy of a data set of the Hub, or of a file or pattern in it:
//
//	hub/OWNER/NAME/blobs/DIGEST     what was fetched, and is compared with its digest in every process
//	hub/OWNER/NAME/COMMIT/PATH      the same as files, linked where the system has links
//
// A commit is fetched once in every process.
func (f *files) hubPath(s string) (string, error) {
	n, err := parseHub(s)
	if err != nil {
		return "", err
	}
	key := n.repository + "@" + n.revision
	dir, ok := f.hubs[key]
	if !ok {
		if dir, err = f.fillHub(n); err != nil {
			return "", fmt.Errorf("%s%s@%s: %w", hubPrefix, n.repository, n.revision, err)
		}
		f.hubs[key] = dir
	}
	at := filepath.Join(dir, filepath.FromSlash(n.path))
	if _, err := os.Lstat(at); err != nil && !strings.ContainsAny(n.path, "*?[") {
		return "", fmt.Errorf("%s%s@%s has no table %q", hubPrefix, n.repository, n.revision, n.path)
	}
	return at, nil
}

func (f *files) fillHub(n hubName) (string, error) {
	h, err := newHub(f.ctx)
	if err != nil {
		return "", err
	}
	commit, err := h.commit(n)
	if err != nil {
		return "", err
	}
	list, err := h.list(n, commit)
	if err != nil {
		return "", err
	}
	size := int64(0)
	for _, file := range list {
		size += file.Size
	}
	if len(list) == 0 || size > DefaultMaxBytes {
		return "", fmt.Errorf("%d files that end in %s, with %d bytes; expected some, and at most %d bytes", len(list), strings.Join(hubFiles, ", "), size, int64(DefaultMaxBytes))
	}
	root := filepath.Join(f.cache.dir, "hub", filepath.FromSlash(n.repository))
	blobs, dir := filepath.Join(root, "blobs"), filepath.Join(root, commit)
	if err := os.MkdirAll(blobs, 0o777); err != nil {
		return "", err
	}
	for _, file := range list {
		blob, err := h.fetch(n, commit, file, blobs)
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, filepath.FromSlash(file.Path))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return "", err
		}
		name, _ := file.digest()
		if got, err := file.digestOf(to); err == nil && got == name {
			continue
		}
		if err := linkOrCopy(blob, to); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// linkOrCopy makes a file that is another one, or has its content.
func linkOrCopy(from, to string) error {
	temp := atomicfile.TempName(to)
	if err := os.Link(from, temp); err == nil {
		return os.Rename(temp, to)
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	return atomicfile.WriteFile(to, func(w io.Writer) error {
		_, err := io.Copy(w, in)
		return err
	})
}

// hubNamed is the name of what a path below a copy of the Hub's is, with its commit.
func (f *files) hubNamed(abs string) (string, bool) {
	rel, err := filepath.Rel(filepath.Join(f.cache.dir, "hub"), abs)
	if err != nil || !filepath.IsLocal(rel) {
		return "", false
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	if len(parts) < 3 || !isHex(parts[2], 40) {
		return "", false
	}
	return hubPrefix + path.Join(parts[0], parts[1]) + "@" + path.Join(parts[2:]...), true
}
