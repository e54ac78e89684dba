package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/oip"
)

// document reads a small JSON body into v; an empty body leaves v as it is.
func (h *handler) document(r *http.Request, v any) error {
	c := h.calls.Get().(*call)
	defer h.release(c)
	body, err := h.read(c, r, 0)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, v); err != nil {
		return statusf(http.StatusBadRequest, "request: %v", err)
	}
	return nil
}

func (h *handler) index(w http.ResponseWriter, r *http.Request) error {
	var ask struct {
		Ready bool `json:"ready"`
	}
	if err := h.document(r, &ask); err != nil {
		return err
	}
	return reply(w, oip.NewIndex(h.service.Index(ask.Ready)))
}

func (h *handler) load(w http.ResponseWriter, r *http.Request, t target) error {
	if err := deliberate(r, mediaJSON); err != nil {
		return err
	}
	var ask struct {
		Parameters map[string]json.RawMessage `json:"parameters"`
	}
	if err := h.document(r, &ask); err != nil {
		return err
	}
	var o serve.LoadOptions
	for name, raw := range ask.Parameters {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return statusf(http.StatusBadRequest, "parameter %q: expected a string", name)
		}
		path, isFile := strings.CutPrefix(name, "file:")
		switch {
		case name == "config":
			o.Config = []byte(text)
		case isFile:
			b, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return statusf(http.StatusBadRequest, "parameter %q: %v", name, err)
			}
			if err := oip.CheckPath(path); err != nil {
				return err
			}
			if o.Files == nil {
				o.Files = map[string][]byte{}
			}
			o.Files[path] = b
		default:
			return statusf(http.StatusBadRequest, "parameter %q: expected config or file:PATH", name)
		}
	}
	if err := h.service.Load(r.Context(), t.model, o); err != nil {
		return err
	}
	write(w, http.StatusOK, []byte("{}"))
	return nil
}

func (h *handler) unload(w http.ResponseWriter, r *http.Request, t target) error {
	if err := deliberate(r, mediaJSON); err != nil {
		return err
	}
	var ask struct{}
	if err := h.document(r, &ask); err != nil {
		return err
	}
	if err := h.service.Unload(r.Context(), t.model); err != nil {
		return err
	}
	write(w, http.StatusOK, []byte("{}"))
	return nil
}
