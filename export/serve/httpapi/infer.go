package httpapi

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/oip"
)

// infer answers an inference.
func (h *handler) infer(w http.ResponseWriter, r *http.Request, t target) error {
	jsonLen := -1
	if v := r.Header[oip.HeaderLength]; len(v) > 0 {
		n, err := strconv.Atoi(v[0])
		if err != nil || n < 0 || len(v) > 1 {
			return statusf(http.StatusBadRequest, "header %s: %.40q, expected the length of the JSON", oip.HeaderLength, strings.Join(v, ", "))
		}
		jsonLen = n
	}
	c := h.calls.Get().(*call)
	kept := false // by a run that outlives the request
	defer func() {
		if kept {
			h.forget(c)
		} else {
			h.release(c)
		}
	}()
	body, err := h.read(c, r, oip.Offset(jsonLen))
	if err != nil {
		return err
	}
	if jsonLen == 0 {
		err = h.decodeRaw(c, body, t)
	} else {
		err = c.req.Decode(body, jsonLen)
	}
	if err != nil {
		return err
	}
	c.req.Model, c.req.Version = t.model, t.version
	if c.req.Sequence.ID != "" { // others leave nothing behind
		if err := deliberate(r, mediaJSON, mediaBinary); err != nil {
			return err
		}
	}

	if h.running.Add(1) > int64(h.MaxConcurrent) {
		h.running.Add(-1)
		return statusf(http.StatusTooManyRequests, "%d inferences are running or waiting; try again later", h.MaxConcurrent)
	}
	ctx := r.Context()
	if d := shorter(h.Timeout, c.req.Timeout); d > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	err = h.service.Infer(ctx, &c.req.Request, &c.resp)
	h.running.Add(-1)
	if err != nil {
		code := serve.CodeOf(err)
		kept = code == serve.DeadlineExceeded || code == serve.Canceled || ctx.Err() != nil
		return err
	}
	if c.out, jsonLen, err = c.req.AppendResponse(c.out[:0], &c.resp); err != nil {
		return err
	}
	out, encoding := compress(r, c.out)
	if encoding != "" {
		w.Header()["Content-Encoding"] = []string{encoding}
		w.Header()["Vary"] = []string{"Accept-Encoding"}
	}
	send(w, out, jsonLen)
	return nil
}

var typeBinary = []string{mediaBinary}

// send writes an answer.
func send(w http.ResponseWriter, out []byte, jsonLen int) {
	header := w.Header()
	// One slice for both values: a header is a view of two strings.
	v := []string{strconv.Itoa(len(out)), ""}
	header["Content-Length"] = v[:1:1]
	header["Content-Type"] = typeJSON
	if jsonLen >= 0 {
		v[1] = strconv.Itoa(jsonLen)
		header[oip.HeaderLength] = v[1:]
		header["Content-Type"] = typeBinary
	}
	w.Write(out) //nolint:errcheck // the client is gone, and nobody is left to tell
}

// decodeRaw reads a body without JSON.
func (h *handler) decodeRaw(c *call, body []byte, t target) error {
	m, err := h.service.Metadata(t.model, t.version)
	if err != nil {
		return err
	}
	one := -1
	for i, p := range m.Inputs {
		if p.Implicit {
			continue
		}
		if one >= 0 {
			return statusf(http.StatusBadRequest, "%s is 0, which is for models with one input, but %q has more", oip.HeaderLength, t.model)
		}
		one = i
	}
	if one < 0 {
		return statusf(http.StatusBadRequest, "%s is 0, which is for models with one input, but %q has none", oip.HeaderLength, t.model)
	}
	return c.req.DecodeRaw(body, m.Inputs[one])
}

// shorter returns the lesser of two times of which 0 means none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b > 0 && b < a {
		return b
	}
	return a
}

// accepts reports whether a list of encodings has one, and does not rule it out.
func accepts(list, encoding string) bool {
	for item := range strings.SplitSeq(list, ",") {
		name, q, _ := strings.Cut(item, ";")
		if strings.EqualFold(strings.TrimSpace(name), encoding) {
			_, weight, ok := strings.Cut(q, "=")
			f, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
			return !ok || err == nil && f > 0
		}
	}
	return false
}
