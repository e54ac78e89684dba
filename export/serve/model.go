package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// maxGone is how many versions that are no longer listed keep their statistics.
const maxGone = 16

// model is a name and the versions that are served under it.
type model struct {
	server    *Server
	name      string
	table     atomic.Pointer[table]
	turn      atomic.Uint64 // counts requests without an ID that were routed
	copied    atomic.Uint64 // counts requests without an ID that may be shadowed
	sequences sequences
	shadow    shadower

	wanted     atomic.Bool // it is to be served; in Explicit mode only what was loaded is
	overridden atomic.Bool // what is served was given to Load, not listed by a source
	busy       atomic.Bool // Watch is at it
	found      atomic.Bool // nobody has asked for it by name
	tried      atomic.Bool // what is listed was loaded, or could not be

	// change is held while versions are loaded and the table is replaced.
	change sync.Mutex
	// mu guards what follows.
	mu sync.Mutex
	// look is the latest that was acted on; abort gives up what is under way.
	look     uint64
	abort    context.CancelFunc
	loading  map[string]string // versions that are being loaded, and how far they are
	stats    map[string]*counters
	gone     []string            // names in stats that are not in the table, oldest first
	leaving  map[*version]string // versions out of the table that are not closed yet, and why
	failures map[string]failure
}

// failure is why a version did not load; it is not tried again before its stamp changes.
type failure struct{ stamp, reason string }

// table is what is served at one moment. It is never changed.
type table struct {
	config   Config
	versions []*version // from the oldest to the newest
	fallback *version   // for requests that name no version, where there are no routes
	names    map[string]*version
	aliases  map[string]string
	routes   []route
	shadows  []target
	// status has the versions that are not served, by the reason; err is why there are none.
	status []ModelStatus
	err    string
}

// acquire takes a reference to the version that a request means.
func (m *model) acquire(req *Request) (*version, *table, error) {
	for {
		t := m.table.Load()
		v, err := t.pick(m, req)
		if err != nil {
			return nil, nil, err
		}
		if v.acquire() {
			return v, t, nil
		}
		// The version was retired after the table was read, so there is another table now.
	}
}

// pick finds the version that a request means.
func (t *table) pick(m *model, req *Request) (*version, error) {
	switch {
	case req.Version != "":
		return t.find(req.Version)
	case len(t.routes) > 0:
		return t.route(m, req), nil
	case t.fallback == nil:
		return nil, fail(NotReady, "%s", cmp.Or(t.err, "no version is ready"))
	}
	return t.fallback, nil
}

// find looks a version up by name, alias or the beginning of a digest.
func (t *table) find(name string) (*version, error) {
	if v := t.names[name]; v != nil {
		return v, nil
	}
	var found *version
	for _, v := range t.versions {
		if digest, ok := strings.CutPrefix(v.name, "sha256:"); ok {
			prefix := strings.TrimPrefix(name, "sha256:")
			if len(prefix) >= 4 && strings.HasPrefix(digest, prefix) {
				if found != nil {
					return nil, invalid("version %q fits more than one digest", name)
				}
				found = v
			}
		}
	}
	if found != nil {
		return found, nil
	}
	for _, s := range t.status {
		if s.Version == name || slices.Contains(s.Aliases, name) {
			return nil, fail(NotReady, "version %s is %s: %s", name, s.State, s.Reason)
		}
	}
	return nil, fail(NotFound, "unknown version %q", name)
}

// counters returns a version's statistics, old ones where it served before.
func (m *model) counters(name string) *counters {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stats[name] == nil {
		m.stats[name] = &counters{}
	}
	m.gone = slices.DeleteFunc(m.gone, func(n string) bool { return n == name })
	return m.stats[name]
}

// closed is called when a version has been closed.
func (m *model) closed(v *version, err error) {
	m.mu.Lock()
	delete(m.leaving, v)
	m.mu.Unlock()
	if err != nil {
		m.server.log(ModelStatus{Name: m.name, Version: v.name, State: Unavailable, Reason: fmt.Sprintf("close: %v", err)})
	}
}

// reconcile makes the table what a listing says, unless something later was acted on before its
// turn came. It returns what could not be loaded; the versions that serve then go on. explicit is
// for Load: everything is loaded again, and Poll leaves it alone where it was overridden.
func (m *model) reconcile(ctx context.Context, j job, explicit, override bool) error {
	m.change.Lock()
	defer m.change.Unlock()
	within, over, ok := m.begin(ctx, j.look)
	if !ok {
		if explicit && len(m.table.Load().versions) == 0 {
			return at(fail(NotReady, "%s", m.table.Load().err), m.name, "")
		}
		return nil
	}
	defer over()
	err := m.follow(within, j.l, explicit)
	m.tried.Store(true)
	if within.Err() != nil && ctx.Err() == nil {
		return at(fail(NotReady, "the load was cancelled because the model was unloaded"), m.name, "")
	}
	if n := len(m.table.Load().versions); explicit && n > 0 {
		m.wanted.Store(true)
		m.overridden.Store(err == nil && override)
	}
	return err
}

// begin says that a look is acted on, which unload can give up by cancelling the context. The
// caller holds change.
func (m *model) begin(ctx context.Context, look uint64) (_ context.Context, over func(), ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if look < m.look {
		return nil, nil, false
	}
	m.look = look
	ctx, m.abort = context.WithCancel(ctx)
	return ctx, m.abort, true
}

// follow makes the table what a listing says. The caller holds change.
func (m *model) follow(ctx context.Context, l Listing, again bool) error {
	old := m.table.Load()
	next := &table{config: l.Config.withDefaults(), names: map[string]*version{}, aliases: map[string]string{}}
	if err := errors.Join(l.Err, l.Config.Validate()); err != nil {
		return m.keep(old, err)
	}
	if len(l.Config.Ignored) > 0 && !slices.Equal(l.Config.Ignored, old.config.Ignored) {
		m.server.log(ModelStatus{Name: m.name, State: Loading, Reason: "the configuration asks for what has no effect here: " + strings.Join(l.Config.Ignored, ", ")})
	}
	var errs []error
	loaded := map[string]*version{}
	kept := map[string]string{} // why an older version serves, by name
	get := func(c Candidate) bool {
		if loaded[c.Name] != nil {
			return true
		}
		v, err := m.ready(ctx, old, c, next.config, l.Stamp, again)
		if err == nil {
			loaded[c.Name] = v
			return true
		}
		errs = append(errs, at(err, m.name, c.Name))
		status := ModelStatus{Name: m.name, Version: c.Name, State: Unavailable, Reason: err.Error()}
		if before := old.byName(c.Name); before != nil {
			loaded[c.Name], kept[c.Name] = before, "reload failed, what was loaded before serves: "+err.Error()
			return true
		}
		next.status = append(next.status, status)
		return false
	}
	m.choose(l, next.config.Policy, old, get, loaded, &errs)
	if ctx.Err() != nil {
		m.discard(old, loaded)
		return at(ended(ctx), m.name, "")
	}
	if len(loaded) == 0 && len(errs) > 0 {
		for _, v := range old.versions {
			loaded[v.name], kept[v.name] = v, "nothing that is listed could be loaded, what was loaded before serves: "+errs[0].Error()
		}
	}
	for _, c := range l.Versions {
		if v := loaded[c.Name]; v != nil {
			next.versions = append(next.versions, v)
			next.names[c.Name] = v
			delete(loaded, c.Name)
		}
	}
	// The remaining versions are no longer listed and serve in place of those that failed.
	left := slices.Sorted(maps.Keys(loaded))
	for k, name := range left {
		next.versions = slices.Insert(next.versions, k, loaded[name])
		next.names[name] = loaded[name]
	}
	for alias, name := range l.Aliases {
		v := next.names[name]
		if v == nil && next.names[old.aliases[alias]] != nil {
			v = next.names[old.aliases[alias]] // the alias moves when its new version is ready
		}
		if v != nil && next.names[alias] == nil {
			next.names[alias] = v
			next.aliases[alias] = v.name
		}
	}
	if n := len(next.versions); n > 0 {
		next.fallback = next.versions[n-1]
		if refs := next.config.Policy.Specific; len(refs) > 0 && next.aliases[refs[0]] != "" {
			next.fallback = next.names[refs[0]] // a followed alias may point at an older version
		}
	} else {
		next.err = "no version is ready"
		if len(errs) > 0 {
			next.err = errors.Join(errs...).Error()
		}
	}
	errs = append(errs, next.direct(l.Config)...)
	for name, reason := range kept {
		next.status = append(next.status, ModelStatus{Name: m.name, Version: name, State: Ready, Reason: reason})
	}
	slices.SortFunc(next.status, func(a, b ModelStatus) int { return strings.Compare(a.Version, b.Version) })
	m.install(old, next, "replaced or no longer wanted")
	return errors.Join(errs...)
}

// choose loads what the policy wants.
func (m *model) choose(l Listing, p VersionPolicy, old *table, get func(Candidate) bool, loaded map[string]*version, errs *[]error) {
	switch {
	case p.All:
		for _, c := range l.Versions {
			get(c)
		}
	case len(p.Specific) > 0:
		for _, ref := range p.Specific {
			name := ref
			if target, ok := l.Aliases[ref]; ok {
				name = target
			}
			i := slices.IndexFunc(l.Versions, func(c Candidate) bool { return names(c.Name, name) })
			if i >= 0 && get(l.Versions[i]) {
				continue
			}
			if i < 0 {
				*errs = append(*errs, at(fail(NotFound, "there is no version %q", ref), m.name, ""))
			}
			if old.names[ref] != nil {
				loaded[old.names[ref].name] = old.names[ref]
			}
		}
	default:
		n := 0
		for _, c := range slices.Backward(l.Versions) {
			if n < p.Latest && get(c) {
				n++
			}
		}
	}
}

// names reports whether a version's name, or a prefix of its digest, is meant.
func names(version, ref string) bool {
	digest, ok := strings.CutPrefix(version, "sha256:")
	ref = strings.TrimPrefix(ref, "sha256:")
	return version == ref || ok && len(ref) >= 4 && strings.HasPrefix(digest, ref)
}

func (t *table) byName(name string) *version {
	for _, v := range t.versions {
		if v.name == name {
			return v
		}
	}
	return nil
}

// ready returns a version of the old table that is still the same, or loads it.
func (m *model) ready(ctx context.Context, old *table, c Candidate, config Config, configStamp string, again bool) (*version, error) {
	stamp := configStamp + "\x00" + c.Stamp
	if v := old.byName(c.Name); v != nil && v.stamp == stamp && !again {
		return v, nil
	}
	m.mu.Lock()
	f := m.failures[c.Name]
	m.mu.Unlock()
	if f.stamp == stamp && !again {
		return nil, errors.New(f.reason)
	}
	// Not a failure of the version: it is tried again when there is room.
	if err := m.server.room(); err != nil {
		return nil, err
	}
	m.server.log(ModelStatus{Name: m.name, Version: c.Name, State: Loading})
	v, err := m.loadInTime(ctx, c, config, stamp)
	m.mu.Lock()
	delete(m.failures, c.Name)
	if err != nil && ctx.Err() == nil {
		m.failures[c.Name] = failure{stamp, err.Error()}
	}
	m.mu.Unlock()
	if err != nil {
		m.server.log(ModelStatus{Name: m.name, Version: c.Name, State: Unavailable, Reason: err.Error()})
		return nil, err
	}
	m.server.log(ModelStatus{Name: m.name, Version: c.Name, State: Ready})
	return v, nil
}

// keep leaves the table as it is, with the reason why it is not another.
func (m *model) keep(old *table, err error) error {
	next := &table{config: Config{}.withDefaults(), names: map[string]*version{}}
	if len(old.versions) > 0 {
		*next = *old
		next.status = append(slices.DeleteFunc(slices.Clone(old.status), func(s ModelStatus) bool { return s.Version == "" }),
			ModelStatus{Name: m.name, State: Unavailable, Reason: "what is listed now cannot be served, what was loaded before serves: " + err.Error()})
	}
	next.err = err.Error()
	m.table.Store(next)
	return at(err, m.name, "")
}

// discard closes what was loaded for a table that is not installed.
func (m *model) discard(old *table, loaded map[string]*version) {
	for name, v := range loaded {
		if old.byName(name) != v {
			v.release()
		}
	}
}

// install replaces the table and retires the versions that are not in the new one.
func (m *model) install(old, next *table, why string) {
	m.table.Store(next)
	var retired []*version
	m.mu.Lock()
	for _, v := range old.versions {
		if !slices.Contains(next.versions, v) {
			m.leaving[v] = why
			retired = append(retired, v)
			if next.byName(v.name) == nil {
				m.gone = append(m.gone, v.name)
			}
		}
	}
	for len(m.gone) > maxGone {
		delete(m.stats, m.gone[0])
		m.gone = m.gone[1:]
	}
	listed := map[string]bool{}
	for _, s := range next.status {
		listed[s.Version] = true
	}
	maps.DeleteFunc(m.failures, func(name string, _ failure) bool { return !listed[name] && next.byName(name) == nil })
	m.mu.Unlock()
	for _, v := range retired {
		v.retire()
	}
	m.shadow.follow(next)
}

// unload stops serving the model. Loads are cancelled, and what was looked at before does not
// count any more.
func (m *model) unload(look uint64, why string) {
	m.mu.Lock()
	m.look = look
	if m.abort != nil {
		m.abort()
	}
	m.mu.Unlock()
	m.change.Lock()
	defer m.change.Unlock()
	m.wanted.Store(false)
	m.overridden.Store(false)
	m.install(m.table.Load(), &table{config: Config{}.withDefaults(), names: map[string]*version{}, err: why}, why)
	m.end()
	m.server.log(ModelStatus{Name: m.name, State: Unavailable, Reason: why})
}

// statuses lists the model's versions.
func (m *model) statuses(ready bool) []ModelStatus {
	t := m.table.Load()
	var list []ModelStatus
	notes := map[string]string{}
	for _, s := range t.status {
		if s.State == Ready {
			notes[s.Version] = s.Reason
		}
	}
	for _, v := range t.versions {
		list = append(list, ModelStatus{Name: m.name, Version: v.name, Aliases: t.aliasesOf(v), State: Ready, Reason: notes[v.name], Default: v == t.fallback})
	}
	if ready {
		return list
	}
	m.mu.Lock()
	for name, stage := range m.loading {
		if t.byName(name) == nil {
			list = append(list, ModelStatus{Name: m.name, Version: name, State: Loading, Reason: stage})
		}
	}
	for v, why := range m.leaving {
		list = append(list, ModelStatus{Name: m.name, Version: v.name, State: Unloading, Reason: why})
	}
	slices.SortStableFunc(list[len(t.versions):], func(a, b ModelStatus) int { return strings.Compare(a.Version, b.Version) })
	for _, s := range t.status {
		if _, again := m.loading[s.Version]; s.State != Ready && !again {
			list = append(list, s)
		}
	}
	m.mu.Unlock()
	if len(list) == 0 {
		list = append(list, ModelStatus{Name: m.name, State: Unavailable, Reason: t.err})
	}
	return list
}

func (t *table) aliasesOf(v *version) []string {
	var list []string
	for _, alias := range slices.Sorted(maps.Keys(t.aliases)) {
		if t.aliases[alias] == v.name {
			list = append(list, alias)
		}
	}
	return list
}
