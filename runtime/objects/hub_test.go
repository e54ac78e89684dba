package objects_test

import (
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/objects"
	_ "github.com/onnxrl/onnxrl/runtime/objects/web"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// hubDouble is a data set on a server that speaks the Hub's protocol: what revisions are, files in two
// pages, and large ones on another host, which must not see the token.
type hubDouble struct {
	commits map[string]string
	files   map[string]string // by path
	large   string            // path of a file that is kept by its SHA-256
	fetched []string
	broken  int // answers that fail yet
}

func (d *hubDouble) start(t *testing.T) {
	t.Helper()
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token went to another host")
		}
		fmt.Fprint(w, d.files[strings.TrimPrefix(r.URL.Path, "/")])
	}))
	t.Cleanup(store.Close)
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.broken > 0 {
			d.broken--
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		api, file := "/api/datasets/me/bars/", "/datasets/me/bars/resolve/"
		switch {
		case strings.HasPrefix(r.URL.Path, api+"revision/"):
			if commit, ok := d.commits[strings.TrimPrefix(r.URL.Path, api+"revision/")]; ok {
				fmt.Fprintf(w, `{"id": "me/bars", "sha": %q}`, commit)
				return
			}
		case strings.HasPrefix(r.URL.Path, api+"tree/") && r.URL.Query().Get("recursive") == "true":
			list := []map[string]any{{"type": "directory", "path": "data", "size": 0, "oid": ""}}
			for path, text := range sorted.All(d.files) {
				f := map[string]any{"type": "file", "path": path, "size": len(text), "oid": fmt.Sprintf("%x", sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(text), text))))}
				if path == d.large {
					f["lfs"] = map[string]any{"oid": hexOf(text), "size": len(text)}
				}
				list = append(list, f)
			}
			if r.URL.Query().Get("cursor") == "" {
				w.Header().Set("Link", fmt.Sprintf(`<%s%s?recursive=true&cursor=2>; rel="next"`, s.URL, r.URL.Path))
				list = list[:2]
			} else {
				list = list[2:]
			}
			if err := json.NewEncoder(w).Encode(list); err != nil {
				t.Error(err)
			}
			return
		case strings.HasPrefix(r.URL.Path, file):
			_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, file), "/")
			if text, ok := d.files[path]; ok {
				d.fetched = append(d.fetched, path)
				switch {
				case path == d.large:
					http.Redirect(w, r, strings.Replace(store.URL, "127.0.0.1", "localhost", 1)+"/"+path, http.StatusFound)
				default:
					fmt.Fprint(w, text)
				}
				return
			}
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	t.Cleanup(s.Close)
	t.Setenv("HF_ENDPOINT", s.URL)
	t.Setenv("HF_TOKEN", "secret")
}

// hexOf is the SHA-256 of a text.
func hexOf(text string) string {
	return strings.TrimPrefix(string(objects.DigestOf([]byte(text))), "sha256:")
}

// TestHub: the tables of a data set of the Hub are fetched once under the commit that a revision is, and
// compared with their digests; of a later commit only what has changed is fetched.
func TestHub(t *testing.T) {
	first, second := strings.Repeat("a", 40), strings.Repeat("b", 40)
	d := &hubDouble{
		commits: map[string]string{"main": first, "v1": first, "refs/convert/parquet": first}, large: "data/b c.csv", broken: 1,
		files: map[string]string{"README.md": "# bars", "data/a.csv": "one", "data/b c.csv": "two", "model.safetensors": "never"},
	}
	d.start(t)
	cache := t.TempDir()
	again := func() { objects.SetLocal(objects.LocalOptions{Dir: cache}) }
	again()
	t.Cleanup(func() { objects.SetLocal(objects.LocalOptions{}) })
	read := func(name, file, want string) {
		t.Helper()
		path, err := objects.Local(name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(path, file))
		if err != nil || string(text) != want {
			t.Errorf("%s: %q, error %v", name, text, err)
		}
	}
	read("hf://datasets/me/bars", "data/a.csv", "one")
	read("hf://datasets/me/bars@v1/data/b c.csv", "", "two")
	read("hf://datasets/me/bars@refs%2Fconvert%2Fparquet/data", "a.csv", "one")
	if got := strings.Join(d.fetched, " "); got != "README.md data/a.csv data/b c.csv" {
		t.Errorf("fetched %s", got)
	}
	path, err := objects.Local("hf://datasets/me/bars/data/*.csv")
	if found, e := filepath.Glob(path); err != nil || e != nil || len(found) != 2 || objects.Named(found[0]) != "hf://datasets/me/bars@"+first+"/data/a.csv" {
		t.Errorf("%v is %s, error %v", found, objects.Named(path), err)
	}
	if abs, err := objects.Abs("hf://datasets/me/bars"); err != nil || abs != "hf://datasets/me/bars" || !objects.IsReference(abs) {
		t.Errorf("%s, error %v", abs, err)
	}
	// Another process, another commit, and a copy that somebody has changed.
	again()
	d.fetched, d.commits["main"], d.files["data/a.csv"] = nil, second, "three"
	blob := filepath.Join(cache, "hub/me/bars/blobs", hexOf("two"))
	if err := os.WriteFile(blob, []byte("tow"), 0o666); err != nil {
		t.Fatal(err)
	}
	read("hf://datasets/me/bars", "data/a.csv", "three")
	read("hf://datasets/me/bars", "data/b c.csv", "two")
	if got := strings.Join(d.fetched, " "); got != "data/a.csv data/b c.csv" {
		t.Errorf("fetched %s", got)
	}
	// The refused requests.
	for name, want := range sorted.All(map[string]string{
		"hf://datasets/me":                  "expected hf://datasets/OWNER/NAME",
		"hf://datasets/me/bars/../../x":     "expected one below the data set",
		"hf://datasets/me/bars@v2":          "no such revision",
		"hf://datasets/me/bars/data/c.csv":  `has no table "data/c.csv"`,
		"hf://datasets/me/bars/model.safet": "has no table",
	}) {
		if _, err := objects.Local(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, expected %q", name, err, want)
		}
	}
	again()
	t.Setenv("HF_TOKEN", "another")
	if _, err := objects.Local("hf://datasets/me/bars"); err == nil || !strings.Contains(err.Error(), "have a token (HF_TOKEN)") || strings.Contains(err.Error(), "another") {
		t.Errorf("error %v", err)
	}
	t.Setenv("HF_ENDPOINT", "huggingface.co")
	if _, err := objects.Local("hf://datasets/me/bars"); err == nil || !strings.Contains(err.Error(), "HF_ENDPOINT: expected a URL such as https://huggingface.co") {
		t.Errorf("error %v", err)
	}
}
