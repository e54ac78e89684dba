package httpapi

import (
	"net/http"

	"github.com/onnxrl/onnxrl/export/serve/oip"
)

func (h *handler) server(w http.ResponseWriter) error {
	return reply(w, oip.ServerMetadata{Name: h.Name, Version: h.Version, Extensions: oip.Extensions})
}

func (h *handler) health(w http.ResponseWriter, what string, on bool) error {
	body, code := []byte(`{"`+what+`":true}`), http.StatusOK
	if !on {
		body, code = []byte(`{"`+what+`":false}`), http.StatusServiceUnavailable
	}
	write(w, code, body)
	return nil
}

func (h *handler) metadata(w http.ResponseWriter, t target) error {
	m, err := h.service.Metadata(t.model, t.version)
	if err != nil {
		return err
	}
	return reply(w, oip.NewModelMetadata(m))
}

func (h *handler) modelReady(w http.ResponseWriter, t target) error {
	if err := h.service.ModelReady(t.model, t.version); err != nil {
		return err
	}
	return reply(w, struct {
		Name  string `json:"name"`
		Ready bool   `json:"ready"`
	}{t.model, true})
}

func (h *handler) config(w http.ResponseWriter, t target) error {
	m, err := h.service.Metadata(t.model, t.version)
	if err != nil {
		return err
	}
	c, err := h.service.Config(t.model, t.version)
	if err != nil {
		return err
	}
	return reply(w, oip.NewModelConfig(m, c))
}

func (h *handler) stats(w http.ResponseWriter, t target) error {
	s, err := h.service.Statistics(t.model, t.version)
	if err != nil {
		return err
	}
	return reply(w, oip.NewStatistics(s))
}
