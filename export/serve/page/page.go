package page

import (
	"embed"
	"encoding/json"
	"net/http"
	"slices"
)

//go:embed assets
var assets embed.FS

// Policy is the Content-Security-Policy of the page: its own files, nothing else.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// files are what the page consists of: path, file below assets and media type.
var files = []struct{ path, file, media string }{
	{"/{$}", "index.html", "text/html; charset=utf-8"},
	{"/page/page.css", "page.css", "text/css; charset=utf-8"},
	{"/page/page.js", "page.js", "text/javascript; charset=utf-8"},
	{"/page/icon.svg", "icon.svg", "image/svg+xml"},
}

// IsFile reports whether a path is one of those that [Files] serves.
func IsFile(path string) bool {
	return path == "/" || slices.ContainsFunc(files[1:], func(f struct{ path, file, media string }) bool { return f.path == path })
}

// Handler serves the files and the data.
func Handler(s Source) http.Handler {
	files, data := Files(), Data(s)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if IsFile(r.URL.Path) {
			files.ServeHTTP(w, r)
		} else {
			data.ServeHTTP(w, r)
		}
	})
}

// Files serves the page and what it consists of: GET / and GET /page/*.
func Files() http.Handler {
	mux := http.NewServeMux()
	for _, f := range files {
		text, err := assets.ReadFile("assets/" + f.file)
		if err != nil {
			panic(err) // embedded; a test reads every one
		}
		mux.HandleFunc("GET "+f.path, func(w http.ResponseWriter, _ *http.Request) {
			secure(w.Header())
			w.Header().Set("Content-Type", f.media)
			// The files change only with the program, but there is no name that says which program:
			// the reader asks again.
			w.Header().Set("Cache-Control", "no-cache")
			w.Write(text)
		})
	}
	return mux
}

// Data serves what the page shows: GET /page/data and GET /page/model.
func Data(s Source) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /page/data", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, s.Snapshot())
	})
	mux.HandleFunc("GET /page/model", func(w http.ResponseWriter, r *http.Request) {
		d, err := s.Describe(r.URL.Query().Get("name"), r.URL.Query().Get("version"))
		if err != nil {
			answer(w, http.StatusNotFound, map[string]string{"error": err.Error()})
			return
		}
		answer(w, http.StatusOK, d)
	})
	return mux
}

func answer(w http.ResponseWriter, status int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		status, text = http.StatusInternalServerError, []byte(`{"error":"the data of the page cannot be written"}`)
	}
	secure(w.Header())
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(text)
}

func secure(h http.Header) {
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
