package page

import (
	"embed"
	"net/http"

	"github.com/onnxrl/onnxrl/export/pages"
)

//go:embed assets
var assets embed.FS

var files = pages.Of(assets)

// IsFile reports whether a path is that of a file of the page, which needs no token.
func IsFile(path string) bool { return files.Has(path) }

// Handler serves the files, and what the page shows: GET /page/data and GET /page/model.
func Handler(s Source) http.Handler {
	mux := http.NewServeMux()
	files.Handle(mux)
	mux.HandleFunc("GET /page/data", func(w http.ResponseWriter, _ *http.Request) {
		_ = pages.Answer(w, http.StatusOK, s.Snapshot())
	})
	mux.HandleFunc("GET /page/model", func(w http.ResponseWriter, r *http.Request) {
		d, err := s.Describe(r.URL.Query().Get("name"), r.URL.Query().Get("version"))
		if err != nil {
			_ = pages.Answer(w, http.StatusNotFound, map[string]string{"error": err.Error()})
			return
		}
		_ = pages.Answer(w, http.StatusOK, d)
	})
	return mux
}
