package library

import (
	"errors"
	"fmt"
	"strings"
)

// Sentinels of this package. [NotFoundError] wraps those that explain it.
var (
	// ErrNotFound: no usable library anywhere, and none could be installed.
	ErrNotFound = errors.New("ONNX Runtime library not found")
	// ErrInstallDisabled: the caller or [EnvInstall] forbids installing.
	ErrInstallDisabled = errors.New("installing ONNX Runtime is disabled")
	// ErrUnsupportedPlatform: no published package carries the library for this
	// operating system and architecture.
	ErrUnsupportedPlatform = errors.New("no published ONNX Runtime library for this platform")
	// ErrClientMissing: a package client is not on the PATH.
	ErrClientMissing = errors.New("package client not found")
	// ErrChecksum: a package carried a file other than the one expected.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrIncompatible: a file is not an ONNX Runtime library that this program
	// can use.
	ErrIncompatible = errors.New("not a usable ONNX Runtime library")
)

// Candidate is one place at which a library was looked for.
type Candidate struct {
	Source Source
	Path   string
	// Version is the release as far as the file tells: "1.32.0", "1.32", or empty.
	Version string
	// SHA256 is known for files of the cache only.
	SHA256 string
	// Err says why the candidate was refused; nil for a usable one.
	Err error
}

// String is one line for people.
func (c Candidate) String() string {
	if c.Err != nil {
		return fmt.Sprintf("%s %s: %v", c.Source, c.Path, c.Err)
	}
	return fmt.Sprintf("%s %s: usable, version %s", c.Source, c.Path, orUnknown(c.Version))
}

// Attempt is one package client that was tried, and why it failed.
type Attempt struct {
	Client  string // "npm" or "pip"
	Command string // the command line; empty if the client is missing
	// Output is the end of what the client printed.
	Output string
	Err    error
}

// String is one line for people; the client's own words follow in Output.
func (a Attempt) String() string {
	if a.Command == "" {
		return fmt.Sprintf("%s: %v", a.Client, a.Err)
	}
	return fmt.Sprintf("%s (%s): %v", a.Client, a.Command, a.Err)
}

// NotFoundError is returned when there is no library to use. errors.Is answers
// for [ErrNotFound] and for the causes of its attempts.
type NotFoundError struct {
	Candidates []Candidate
	Attempts   []Attempt
	// Cause is set if no installation was attempted: [ErrInstallDisabled],
	// [ErrUnsupportedPlatform] or the failure to prepare the cache.
	Cause error
}

func (e *NotFoundError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "locate ONNX Runtime %s: %v", Version, ErrNotFound)
	for _, c := range e.Candidates {
		fmt.Fprintf(&b, "; %s", c)
	}
	for _, a := range e.Attempts {
		fmt.Fprintf(&b, "; install with %s", a)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, "; %v", e.Cause)
	}
	return b.String()
}

// Unwrap exposes ErrNotFound, the cause and the errors of the attempts.
func (e *NotFoundError) Unwrap() []error {
	errs := []error{ErrNotFound}
	if e.Cause != nil {
		errs = append(errs, e.Cause)
	}
	for _, a := range e.Attempts {
		errs = append(errs, a.Err)
	}
	return errs
}

// ChecksumError says that a package carried a different file than expected. It
// matches [ErrChecksum].
type ChecksumError struct {
	Entry     string // path inside the package
	Want, Got string // SHA-256, lower-case hexadecimal; Got is empty if the size already differed
	WantSize  int64
	GotSize   int64
}

func (e *ChecksumError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("%v: %s has %d bytes, expected %d", ErrChecksum, e.Entry, e.GotSize, e.WantSize)
	}
	return fmt.Sprintf("%v: %s has SHA-256 %s, expected %s", ErrChecksum, e.Entry, e.Got, e.Want)
}

// Is makes errors.Is(err, ErrChecksum) true.
func (e *ChecksumError) Is(target error) bool { return target == ErrChecksum }

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
