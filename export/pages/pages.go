package pages

import (
	"embed"
	"encoding/json"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"

	"github.com/onnxrl/onnxrl/export/pages/theme"
)

//go:embed assets
var kit embed.FS

// Policy is the Content-Security-Policy of every page: its own files, nothing else.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// media are the types of files by the ends of their names.
var media = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Files are those of a page by their addresses: / is index.html, and /page/NAME every other file of
// the page and of the kit. They do not change, and many requests may use them at once.
type Files map[string][]byte

// Of has the files of the folder assets of a page, and those of the kit. It panics where a file
// cannot be read or has no known type: the files are embedded.
func Of(page fs.FS) Files {
	f := Files{"/page/theme.css": []byte(theme.Style())}
	for _, from := range []fs.FS{kit, page} {
		entries, err := fs.ReadDir(from, "assets")
		if err != nil {
			panic(err)
		}
		for _, e := range entries {
			text, err := fs.ReadFile(from, "assets/"+e.Name())
			if err != nil {
				panic(err)
			}
			at := "/page/" + e.Name()
			if e.Name() == "index.html" {
				at = "/"
			}
			if f[at] != nil || media[path.Ext(e.Name())] == "" {
				panic("pages: the file " + e.Name() + " is there twice or has no known type")
			}
			f[at] = text
		}
	}
	return f
}

// Has reports whether a path is the address of a file.
func (f Files) Has(path string) bool { return f[path] != nil }

// Handle has a mux answer GET of every address.
func (f Files) Handle(mux *http.ServeMux) {
	for _, at := range slices.Sorted(maps.Keys(f)) {
		pattern, kind := at, media[path.Ext(at)]
		if at == "/" {
			pattern, kind = "/{$}", media[".html"]
		}
		mux.HandleFunc("GET "+pattern, func(w http.ResponseWriter, _ *http.Request) {
			Secure(w.Header())
			w.Header().Set("Content-Type", kind)
			// The files change only with the program, but there is no name that says which program:
			// the reader asks again.
			w.Header().Set("Cache-Control", "no-cache")
			w.Write(f[at])
		})
	}
}

// Answer writes a document as JSON. An error says that v cannot be written; then the answer is an
// error of the server.
func Answer(w http.ResponseWriter, status int, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":"the answer has numbers that JSON does not have"}`)
	}
	Secure(w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(text)
	return err
}

// Secure sets the headers of every answer of a page.
func Secure(h http.Header) {
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
