package library

// Report says what [Locate] would meet, for diagnosis.
type Report struct {
	Version  string // the release that would be installed
	Platform string // for instance "linux-amd64"
	// Candidates in the order of preference. If a person named a library it is the
	// first, and the others would not be asked.
	Candidates []Candidate
	// Clients tells of each package client whether it is present, in the order in
	// which they would be tried: an Attempt without an error is ready.
	Clients []Attempt
	// Install is nil if Locate with AllowInstall may install; otherwise the reason.
	Install error
	// byHand is for each package how a person brings the library from another machine.
	byHand []string
}

// Chosen returns the candidate that Locate would take without installing.
func (r Report) Chosen() (Candidate, bool) {
	for _, c := range r.Candidates {
		if c.Err == nil {
			return c, true
		}
		if c.Source == SourceFlag || c.Source == SourceEnvironment {
			break
		}
	}
	return Candidate{}, false
}

// Status examines every place without changing anything. path is what
// [Options.Path] would be.
func Status(path string) Report {
	return newLocator().status(path)
}

func (l *locator) status(path string) Report {
	r := Report{Version: Version, Platform: l.platform.String(), Install: l.installable(true), byHand: byHand(l.catalog[l.platform])}
	if c, ok := l.named(path); ok {
		r.Candidates = append(r.Candidates, c)
	}
	r.Candidates = append(r.Candidates, l.unnamed()...)
	for _, src := range l.catalog[l.platform] {
		a := Attempt{Client: src.client}
		if argv, err := src.command(); err != nil {
			a.Err = err
		} else {
			a.Command = argv[0]
		}
		r.Clients = append(r.Clients, a)
	}
	return r
}
