package dashboard

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/onnxrl/onnxrl/export/pages"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/models/artifact"
)

// badRequest is an error of the one who asks.
type badRequest struct{ error }

// Handler serves the page and its data to those whom the guard lets in; nil is a guard without
// tokens, which keeps other sites' pages out.
func (b *Board) Handler(g *guard.Guard) http.Handler {
	if g == nil {
		g = guard.New(guard.Tokens{})
	}
	mux := http.NewServeMux()
	files.Handle(mux)
	// Views that answer with JSON; add yours here.
	for pattern, answer := range map[string]func(r *http.Request) (any, error){
		"overview": func(r *http.Request) (any, error) {
			since, err := whole(r, "since")
			return b.Overview(since), err
		},
		"series": func(r *http.Request) (any, error) {
			q := r.URL.Query()
			return b.Series(q["run"], q["tag"])
		},
		"bands": func(r *http.Request) (any, error) {
			q := r.URL.Query()
			return b.Bands(q["run"], q.Get("tag"))
		},
		"checkpoints": func(r *http.Request) (any, error) { return b.Checkpoints(r.URL.Query().Get("id")) },
		"settings":    func(r *http.Request) (any, error) { return b.Settings(r.URL.Query()["run"]) },
		"report":      func(r *http.Request) (any, error) { return b.Report(r.URL.Query().Get("id")) },
		"population":  func(r *http.Request) (any, error) { return b.Population(r.URL.Query().Get("id")) },
		"world":       func(r *http.Request) (any, error) { return b.World(r.URL.Query().Get("id")) },
		"trading":     func(r *http.Request) (any, error) { return b.Trading(r.URL.Query().Get("id")) },
		"artefacts":   func(r *http.Request) (any, error) { return b.Artefacts(r.URL.Query().Get("id")) },
		"files": func(r *http.Request) (any, error) {
			q := r.URL.Query()
			return b.Files(Kind(q.Get("kind")), q.Get("id"))
		},
		"live": func(*http.Request) (any, error) {
			if b.o.Live == nil {
				return nil, fmt.Errorf("a live service %w", errMissing)
			}
			return b.o.Live.data(), nil
		},
		"explain": func(r *http.Request) (any, error) {
			row, err := whole(r, "row")
			if err != nil {
				return nil, err
			}
			head, err := whole(r, "head")
			if err != nil {
				return nil, err
			}
			q := r.URL.Query()
			return b.Explain(r.Context(), q.Get("id"), Question{Version: q.Get("version"), Row: row, Head: head})
		},
	} {
		mux.HandleFunc("GET /data/"+pattern, func(w http.ResponseWriter, r *http.Request) {
			v, err := answer(r)
			if err != nil {
				b.fail(w, r, err)
				return
			}
			b.answer(w, r, http.StatusOK, v)
		})
	}
	mux.HandleFunc("GET /data/file", b.file)
	mux.HandleFunc("GET /data/events", b.events)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := g.Sender(guard.SenderOf(r))
		right := guard.Use
		if files.Has(r.URL.Path) {
			right = guard.Open
		}
		if err == nil {
			err = g.Authorize(right, r.Header.Get("Authorization"))
		}
		if err != nil {
			b.fail(w, r, err)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// whole reads a whole number of the query that is not negative; it is 0 where it is not given.
func whole(r *http.Request, key string) (int, error) {
	text := r.URL.Query().Get(key)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, badRequest{fmt.Errorf("%s is %.40q, expected a whole number from 0 on", key, text)}
	}
	return n, nil
}

func (b *Board) answer(w http.ResponseWriter, r *http.Request, status int, v any) {
	if err := pages.Answer(w, status, v); err != nil {
		b.o.Log.Error("an answer cannot be written", slog.String("path", r.URL.Path), slog.Any("error", err))
	}
}

func (b *Board) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	var of *serve.Error
	var bad badRequest
	var cannot unexplained
	switch {
	case errors.As(err, &of):
		status = of.Code.HTTPStatus()
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
	case errors.As(err, &cannot):
		status = http.StatusUnprocessableEntity
	case errors.As(err, &bad):
		status = http.StatusBadRequest
	case errors.Is(err, errMissing), errors.Is(err, artifact.ErrNotFound), errors.Is(err, fs.ErrNotExist), errors.Is(err, errNoExplainer):
		status = http.StatusNotFound
	default:
		b.o.Log.Warn("a view cannot be shown", slog.String("path", r.URL.Path), slog.Any("error", err))
	}
	b.answer(w, r, status, map[string]string{"error": err.Error()})
}

// file sends a file to be saved: of a store that of a version, of other items one below them.
func (b *Board) file(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	var f io.ReadCloser
	var name string
	var err error
	if Kind(q.Get("kind")) == Store {
		f, name, err = b.openArtefactFile(q.Get("id"), q.Get("version"), q.Get("path"))
	} else {
		f, name, err = b.openFile(Kind(q.Get("kind")), q.Get("id"), q.Get("path"))
	}
	if err != nil {
		b.fail(w, r, err)
		return
	}
	defer f.Close()
	pages.Secure(w.Header())
	// Nothing of a run is shown as a page of this origin.
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	w.Header().Set("Cache-Control", "no-store")
	if _, err := io.Copy(w, f); err != nil {
		b.o.Log.Warn("a file was not sent to its end", slog.String("path", q.Get("path")), slog.Any("error", err))
	}
}

// heartbeat is how often a page hears that the board is still there.
const heartbeat = 15 * time.Second

// events tells of changes: an event with the version at once and whenever it has changed, at most
// one in an interval.
func (b *Board) events(w http.ResponseWriter, r *http.Request) {
	changed, end := b.listen()
	defer end()
	pages.Secure(w.Header())
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	c := http.NewResponseController(w)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	send := func(text string) bool {
		// Longer than any beat, so that only a reader who does not read ends it. Not every
		// connection has deadlines.
		if err := c.SetWriteDeadline(time.Now().Add(2 * heartbeat)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return false
		}
		_, err := io.WriteString(w, text)
		return err == nil && c.Flush() == nil
	}
	tell := func() bool {
		b.mu.RLock()
		version := b.version
		b.mu.RUnlock()
		return send(fmt.Sprintf("data: {\"version\":%d}\n\n", version))
	}
	if !tell() {
		return
	}
	for {
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			if !send(": still here\n\n") {
				return
			}
			continue
		case <-changed:
		}
		if !tell() {
			return
		}
		pause.Reset(b.o.Interval)
		select {
		case <-r.Context().Done():
			return
		case <-pause.C:
		}
	}
}
