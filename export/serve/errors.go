package serve

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Code classes what went wrong by what the caller can do about it.
type Code int

const (
	// Internal: the model or the server failed; the same request may work on another version.
	Internal Code = iota
	// InvalidArgument: the request does not fit the model.
	InvalidArgument
	// NotFound: there is no such model or version.
	NotFound
	// NotReady: the model or version is known and does not serve: it loads, failed to load, or the
	// server is closing.
	NotReady
	// Overloaded: a queue or a limit is full; try again later.
	Overloaded
	// DeadlineExceeded and Canceled: the request's context ended.
	DeadlineExceeded
	Canceled
	// Unsupported: the server was started in a mode that does not do this.
	Unsupported
	// Unauthenticated: a token is needed and was not given, or is not right. PermissionDenied: who
	// asks is known, or need not be, and may not do this.
	Unauthenticated
	PermissionDenied
	// Drifted: observations are too far from those that the policy was published on, and it is
	// configured to refuse them. Neither protocol's code is one that clients, proxies and load
	// balancers repeat elsewhere or take a server out for: every replica would answer the same.
	Drifted
)

var codes = [...]struct {
	name   string
	http   int
	grpc   uint32
	reason string
}{
	Internal:         {"internal", 500, 13, "BACKEND"},
	InvalidArgument:  {"invalid argument", 400, 3, "OTHER"},
	NotFound:         {"not found", 404, 5, "OTHER"},
	NotReady:         {"not ready", 503, 14, "OTHER"},
	Overloaded:       {"overloaded", 429, 14, "REJECTED"},
	DeadlineExceeded: {"deadline exceeded", 504, 4, "CANCELED"},
	Canceled:         {"canceled", 499, 1, "CANCELED"},
	Unsupported:      {"unsupported", 501, 12, "OTHER"},
	Unauthenticated:  {"unauthenticated", 401, 16, "OTHER"},
	PermissionDenied: {"permission denied", 403, 7, "OTHER"},
	Drifted:          {"drifted", 422, 9, "OTHER"},
}

// Codes is the number of classes.
const Codes = len(codes)

// String is the class in words.
func (c Code) String() string { return codes[c].name }

// HTTPStatus is the status of an HTTP answer; 499 is what proxies use where the client went away.
func (c Code) HTTPStatus() int { return codes[c].http }

// GRPCCode is the number of google.golang.org/grpc/codes.
func (c Code) GRPCCode() uint32 { return codes[c].grpc }

// Reason is the label that Triton's nv_inference_request_failure has for it: REJECTED, CANCELED,
// BACKEND or OTHER.
func (c Code) Reason() string { return codes[c].reason }

// Error is what every method of this package returns when it fails.
type Error struct {
	Code Code
	// Model and Version are empty where the error is about none.
	Model, Version string
	Err            error
}

// Error says which model and version, and what was expected.
func (e *Error) Error() string {
	switch {
	case e.Model == "":
		return e.Err.Error()
	case e.Version == "":
		return fmt.Sprintf("model %q: %v", e.Model, e.Err)
	default:
		return fmt.Sprintf("model %q version %s: %v", e.Model, e.Version, e.Err)
	}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// UnknownModel is the name of a model that there is not. It says so as Triton does, because clients
// compare the beginning of the text.
type UnknownModel string

func (m UnknownModel) Error() string {
	return "Request for unknown model: '" + string(m) + "' is not found"
}

// loadError says which model Load could not load, in the words that Triton's clients look for;
// polling says that it is not known what to load.
func loadError(model string, polling bool, err error) error {
	code := CodeOf(err)
	if own := new(*Error); errors.As(err, own) && (*own).Version == "" {
		err = (*own).Err
	}
	what := ""
	if polling {
		what = ", failed to poll from model repository"
	}
	return &Error{Code: code, Model: model, Err: fmt.Errorf("failed to load '%s'%s: %w", model, what, err)}
}

// CodeOf classes any error by an [Error] in its chain, or as that of a context. It is
// InvalidArgument where an engine says that the shapes or the numbers of the request do not fit the
// model, and Internal otherwise.
func CodeOf(err error) Code {
	c, ok := ClassOf(err)
	switch {
	case ok:
		return c
	case errors.Is(err, context.DeadlineExceeded):
		return DeadlineExceeded
	case errors.Is(err, context.Canceled):
		return Canceled
	case errors.As(err, new(engine.DataError)), errors.As(err, new(*engine.ShapeError)), errors.As(err, new(*engine.InputError)):
		return InvalidArgument
	}
	return Internal
}

// ClassOf is the class of the [Error] in an error's chain, if there is one.
func ClassOf(err error) (Code, bool) {
	if err == nil {
		return 0, false
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code, true
	}
	return 0, false
}

func invalid(format string, args ...any) *Error {
	return &Error{Code: InvalidArgument, Err: fmt.Errorf(format, args...)}
}

func fail(c Code, format string, args ...any) *Error {
	return &Error{Code: c, Err: fmt.Errorf(format, args...)}
}

// at adds where an error happened; errors of other packages become Internal, or the class of the
// context that they stand for.
func at(err error, model, version string) error {
	if err == nil {
		return nil
	}
	e := new(Error)
	if own := new(*Error); errors.As(err, own) {
		*e = **own
		if e.Model == "" {
			e.Model, e.Version = model, version
		}
		return e
	}
	return &Error{Code: CodeOf(err), Model: model, Version: version, Err: err}
}

// ended is why a context ended. One that was cancelled when its deadline had passed has exceeded
// it: transports close streams at their deadlines by timers of their own, grpc's among them, which
// may come before that of the context.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if d, ok := ctx.Deadline(); ok && err == context.Canceled && !time.Now().Before(d) {
		return context.DeadlineExceeded
	}
	return err
}
