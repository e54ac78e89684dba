package dashboard

import (
	"embed"
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
	{"/page/chart.js", "chart.js", "text/javascript; charset=utf-8"},
	{"/page/icon.svg", "icon.svg", "image/svg+xml"},
}

// isPage reports whether a path is one of the page's files.
func isPage(path string) bool {
	return path == "/" || slices.ContainsFunc(files[1:], func(f struct{ path, file, media string }) bool { return f.path == path })
}

// pages serves the files.
func pages(mux *http.ServeMux) {
	for _, f := range files {
		text, err := assets.ReadFile("assets/" + f.file)
		if err != nil {
			panic(err) // embedded; a test reads every one
		}
		mux.HandleFunc("GET "+f.path, func(w http.ResponseWriter, _ *http.Request) {
			secure(w.Header())
			w.Header().Set("Content-Type", f.media)
			// The files change with the program only, and there is no name that says which.
			w.Header().Set("Cache-Control", "no-cache")
			w.Write(text)
		})
	}
}

func secure(h http.Header) {
	h.Set("Content-Security-Policy", Policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
}
