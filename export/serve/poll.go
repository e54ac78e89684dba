package serve

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// job is a model and what it is to be made equal to.
type job struct {
	m *model
	l Listing
	// look is when the listing was made: of two, the later one counts.
	look uint64
}

// Poll makes what is served equal to what the sources list, all models at once. Its error joins
// what could not be loaded; what served before in its place goes on. In Explicit mode only models
// that are loaded are looked at. Several Polls may run at a time: a model that takes long to load
// does not keep others from being looked at again.
func (s *Server) Poll(ctx context.Context) error {
	jobs, err := s.survey(ctx)
	errs := make([]error, len(jobs))
	var wg sync.WaitGroup
	for i, j := range jobs {
		wg.Go(func() { errs[i] = j.m.reconcile(ctx, j, false, false) })
	}
	wg.Wait()
	return errors.Join(append([]error{err}, errs...)...)
}

// survey scans the sources, adds the models that are new, removes those that are gone, and returns
// the others.
func (s *Server) survey(ctx context.Context) ([]job, error) {
	s.change.Lock()
	defer s.change.Unlock()
	if s.stopping.Load() {
		return nil, fail(NotReady, "the server is closing")
	}
	s.looks++
	listings, complete, err := s.scan(ctx)
	listed := map[string]bool{}
	var jobs []job
	for _, l := range listings {
		m := s.model(l.Name)
		listed[l.Name] = true
		if m == nil {
			m = s.add(l.Name)
		}
		m.found.Store(l.Found)
		if m.wanted.Load() && !m.overridden.Load() {
			jobs = append(jobs, job{m, l, s.looks})
		}
	}
	if complete {
		for name, m := range *s.models.Load() {
			if !listed[name] && !m.overridden.Load() {
				s.remove(name, "the source no longer lists it")
			}
		}
	}
	s.started.Store(true)
	return jobs, err
}

// scan lists all sources. Of models that several sources list the first is meant. complete is false
// where a source could not be read, so that what is missing may be its.
func (s *Server) scan(ctx context.Context) (listings []Listing, complete bool, err error) {
	var errs []error
	seen := map[string]bool{}
	for _, source := range s.sources {
		list, err := source.Scan(ctx)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, l := range list {
			if !seen[l.Name] {
				seen[l.Name] = true
				listings = append(listings, l)
			}
		}
	}
	slices.SortFunc(listings, func(a, b Listing) int { return strings.Compare(a.Name, b.Name) })
	return listings, len(errs) == 0, at(errors.Join(errs...), "", "")
}

func (s *Server) add(name string) *model {
	m := &model{server: s, name: name, stats: map[string]*counters{}, leaving: map[*version]string{}, failures: map[string]failure{}, loading: map[string]string{}}
	m.wanted.Store(s.options.Mode != Explicit)
	m.table.Store(&table{config: Config{}.withDefaults(), names: map[string]*version{}, err: "the model is not loaded"})
	next := maps.Clone(*s.models.Load())
	next[name] = m
	s.models.Store(&next)
	return m
}

// remove forgets a model. The caller holds change.
func (s *Server) remove(name, why string) {
	next := maps.Clone(*s.models.Load())
	m := next[name]
	delete(next, name)
	s.models.Store(&next)
	s.looks++
	m.unload(s.looks, why)
}

// Watch calls Poll at every tick until ctx ends or ticks is closed, and gives each error to report,
// which may be nil; report is called by one goroutine at a time. While models of an earlier tick
// load, the others are looked at.
func (s *Server) Watch(ctx context.Context, ticks <-chan time.Time, report func(error)) {
	var wg sync.WaitGroup
	defer wg.Wait()
	var mu sync.Mutex
	tell := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil && report != nil {
			report(err)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-ticks:
			if !ok {
				return
			}
		}
		jobs, err := s.survey(ctx)
		if err != nil {
			tell(err)
		}
		for _, j := range jobs {
			if !j.m.busy.CompareAndSwap(false, true) {
				continue // it is still at what an earlier look found
			}
			wg.Go(func() {
				defer j.m.busy.Store(false)
				if err := j.m.reconcile(ctx, j, false, false); err != nil {
					tell(err)
				}
			})
		}
	}
}

// Load implements [Service]. The model's versions are compiled again even when nothing about them
// has changed. Requests that are under way finish on what they began with.
func (s *Server) Load(ctx context.Context, name string, o LoadOptions) error {
	if s.options.Mode != Explicit {
		return at(fail(Unsupported, "models are loaded by the server itself; explicit loading is off"), name, "")
	}
	j, err := s.explicit(ctx, name, o)
	if err != nil {
		return loadError(name, true, err)
	}
	err = j.m.reconcile(ctx, j, true, len(o.Config) > 0 || len(o.Files) > 0)
	if err == nil && len(j.m.table.Load().versions) == 0 {
		err = fail(NotFound, "there are no versions to load")
	}
	if err != nil {
		return loadError(name, false, err)
	}
	return nil
}

// explicit finds what Load is to load.
func (s *Server) explicit(ctx context.Context, name string, o LoadOptions) (job, error) {
	s.change.Lock()
	defer s.change.Unlock()
	if s.stopping.Load() {
		return job{}, fail(NotReady, "the server is closing")
	}
	l, err := s.listing(ctx, name, o)
	if err != nil {
		return job{}, at(err, name, "")
	}
	m := s.model(name)
	if m == nil {
		m = s.add(name)
	}
	s.looks++
	return job{m, l, s.looks}, nil
}

// listing is what Load is to load.
func (s *Server) listing(ctx context.Context, name string, o LoadOptions) (Listing, error) {
	if len(o.Files) > 0 {
		return fromFiles(name, o)
	}
	list, _, err := s.scan(ctx)
	i := slices.IndexFunc(list, func(l Listing) bool { return l.Name == name })
	if i < 0 {
		return Listing{}, errors.Join(fail(NotFound, "no source has this model"), err)
	}
	l := list[i]
	if len(o.Config) > 0 {
		rule := l.Config.NonFinite
		if l.Config, err = ParseConfigJSON(name, o.Config); err != nil {
			return Listing{}, err
		}
		if l.Config.NonFinite == AutoNonFinite {
			l.Config.NonFinite = rule
		}
		l.Err, l.Stamp = nil, l.Stamp+"\x00"+string(o.Config)
	}
	return l, nil
}

// Unload implements [Service]. Requests that are under way finish; loads are cancelled.
func (s *Server) Unload(_ context.Context, name string) error {
	if s.options.Mode != Explicit {
		return at(fail(Unsupported, "models are unloaded by the server itself; explicit loading is off"), name, "")
	}
	s.change.Lock()
	defer s.change.Unlock()
	m := s.model(name)
	if m == nil {
		return unknown(name)
	}
	s.looks++
	m.unload(s.looks, "unloaded")
	return nil
}
