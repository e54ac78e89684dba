package library

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Named returns the candidate that a person named by [Flag] or [EnvLibrary], usable or not.
func (r Report) Named() (Candidate, bool) {
	if len(r.Candidates) > 0 && (r.Candidates[0].Source == SourceFlag || r.Candidates[0].Source == SourceEnvironment) {
		return r.Candidates[0], true
	}
	return Candidate{}, false
}

// Advice says, a sentence each, what a person can do where [Report.Chosen] chooses nothing; nil
// where it does.
func (r Report) Advice() []string {
	if _, ok := r.Chosen(); ok {
		return nil
	}
	if c, ok := r.Named(); ok {
		say := []string{
			fmt.Sprintf("%s, named by %s, cannot be used: %v", c.Path, c.Source.by(), c.Err),
			fmt.Sprintf("nothing takes the place of a library that was named: name ONNX Runtime 1.%d or later for %s, or leave %s out", MinMinor, r.Platform, c.Source.by()),
		}
		if i := slices.IndexFunc(r.Candidates, func(c Candidate) bool { return c.Err == nil }); i >= 0 {
			say = append(say, fmt.Sprintf("without %s, %s would be used", c.Source.by(), r.Candidates[i].Path))
		}
		return say
	}
	if r.Install != nil {
		return []string{(&NotFoundError{Cause: r.Install}).Hint()}
	}
	if slices.ContainsFunc(r.Clients, func(c Attempt) bool { return c.Err == nil }) {
		return []string{fmt.Sprintf("ONNX Runtime %s will be installed on first use; 'onnxrl doctor --install' does it now", r.Version)}
	}
	return []string{
		"install " + clients(r.Clients, true) + ", then run 'onnxrl doctor --install'",
		"or bring the library from a machine that has it: " + strings.Join(r.byHand, "; or "),
		fmt.Sprintf("then name it with %s FILE or %s=FILE", Flag, EnvLibrary),
	}
}

// clients names the package clients of attempts, of which one is enough, where asked with where each
// comes from.
func clients(of []Attempt, origin bool) string {
	from := map[string]string{
		"npm": " (it comes with Node.js)",
		"pip": " (python3 -m ensurepip, or the system's package python3-pip)",
	}
	var names []string
	for _, a := range of {
		name := a.Client
		if origin {
			name += from[a.Client]
		}
		names = append(names, name)
	}
	return strings.Join(names, " or ")
}

// byHand lists, for each package of a platform, the command that downloads it and the file to take
// out of its archive.
func byHand(sources []source) []string {
	var ways []string
	for _, s := range sources {
		ways = append(ways, fmt.Sprintf("'%s', and %s from the archive", strings.Join(s.arguments(), " "), s.entry))
	}
	return ways
}

// Hint says what a person can do about it.
func (e *NotFoundError) Hint() string {
	give := fmt.Sprintf("name an ONNX Runtime %s library with %s or %s", Version, Flag, EnvLibrary)
	switch {
	case errors.Is(e.Cause, ErrInstallDisabled):
		return fmt.Sprintf("let it be installed (without --no-install, and with %s unset), or %s", EnvInstall, give)
	case errors.Is(e.Cause, ErrUnsupportedPlatform):
		return "build ONNX Runtime for this platform and " + give + ", or use the portable engine"
	case e.Cause != nil:
		// Nothing can be kept: the cause says which directory is missing.
		return fmt.Sprintf("%v; set HOME (on Unix also XDG_CACHE_HOME) to a directory that can be written to, or %s", e.Cause, give)
	case e.missingClients():
		return "install " + clients(e.Attempts, false) + ", or " + give
	case errors.Is(e, ErrChecksum):
		return "the package client delivered a file that is not the published one; check its configuration (a mirror or proxy), or " + give
	default:
		return "check the network and the package client's configuration, or " + give
	}
}

func (e *NotFoundError) missingClients() bool {
	for _, a := range e.Attempts {
		if !errors.Is(a.Err, ErrClientMissing) {
			return false
		}
	}
	return len(e.Attempts) > 0
}
