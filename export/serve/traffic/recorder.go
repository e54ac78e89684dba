package traffic

import (
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/export/serve"
)

// Recorder counts answers, and logs requests where it was given a log. It is safe for concurrent
// use.
type Recorder struct {
	log *slog.Logger
	// http is by status; grpc by code, and within it by the class of the error, for codes that
	// stand for several.
	http [600]atomic.Uint64
	grpc [codes.Unauthenticated + 1][serve.Codes + 1]atomic.Uint64
}

// noClass is the place of answers whose error is of no class, successes among them.
const noClass = serve.Codes

// New returns a recorder that writes the request log to log, unless it is nil.
func New(log *slog.Logger) *Recorder { return &Recorder{log: log} }

// Logs reports whether there is a request log.
func (r *Recorder) Logs() bool { return r.log != nil }

// HTTP counts an answer over HTTP.
func (r *Recorder) HTTP(status int) {
	if status >= 0 && status < len(r.http) {
		r.http[status].Add(1)
	}
}

// GRPC counts an answer over gRPC; nil is a success.
func (r *Recorder) GRPC(err error) {
	code, class := status.Code(err), noClass
	if c, ok := serve.ClassOf(err); ok {
		class = int(c)
	}
	if int(code) >= len(r.grpc) {
		code = codes.Unknown
	}
	r.grpc[code][class].Add(1)
}

// Count is a number of answers.
type Count struct {
	// Protocol is http or grpc. Code is a status such as "429", or a name such as "Unavailable".
	Protocol, Code string
	// Reason says what the code stands for in the words of [serve.Code], or of HTTP; ok for
	// successes.
	Reason string
	N      uint64
}

// Counts are those of all codes that were answered, and of those that every server may answer from
// the beginning, so that a first refusal is an increase.
func (r *Recorder) Counts() []Count {
	expected := map[[2]string]bool{{"http", "200"}: true, {"grpc", "OK"}: true}
	for c := range serve.Code(serve.Codes) {
		expected[[2]string{"http", strconv.Itoa(c.HTTPStatus())}] = true
		expected[[2]string{"grpc " + c.String(), codes.Code(c.GRPCCode()).String()}] = true
	}
	var list []Count
	for s := range r.http {
		code := strconv.Itoa(s)
		if n := r.http[s].Load(); n > 0 || expected[[2]string{"http", code}] {
			list = append(list, Count{"http", code, httpReason(s), n})
		}
	}
	for c := range r.grpc {
		code := codes.Code(c).String()
		for class := range r.grpc[c] {
			reason, key := "ok", "grpc"
			switch {
			case class != noClass:
				reason = serve.Code(class).String()
				key += " " + reason
			case c != 0:
				reason, key = "other", "" // of gRPC itself, such as a message that is too large
			}
			if n := r.grpc[c][class].Load(); n > 0 || expected[[2]string{key, code}] {
				list = append(list, Count{"grpc", code, reason, n})
			}
		}
	}
	return list
}

// httpReason is the class that has a status, or what HTTP calls it.
func httpReason(status int) string {
	if status < 400 {
		return "ok"
	}
	for c := range serve.Code(serve.Codes) {
		if c.HTTPStatus() == status {
			return c.String()
		}
	}
	return strings.ToLower(http.StatusText(status))
}
