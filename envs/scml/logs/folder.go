package logs

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// partialSuffix follows the name of a folder while it is written.
const partialSuffix = ".partial"

// negotiationsDir has a file for each negotiation.
const negotiationsDir = "negotiations"

// typePrefix stands before the types of agents, as the league's program writes them; ours are of no
// module of Python.
const typePrefix = "scml.oneshot.sysagents.DefaultOneShotAdapter:onnxrl."

// Options say what a folder is of.
type Options struct {
	// World is the world's name, of which its identifiers are made.
	World string
	// Competitors are the indices of the agents that are scored; nil for all.
	Competitors []int
	// Tournament is the name of the tournament that the world belongs to, which Number numbers the
	// worlds of; empty where there is none.
	Tournament string
	Number     int
	// Trackers is the folder that logs of trackers go to; empty is one of the world's own.
	Trackers string
	Extras
}

// Extras are what is large, and written where it is asked for.
type Extras struct {
	// Negotiations has a file for each negotiation that has ended, with a row for each round.
	Negotiations bool
	// Utilities has ufuns.csv: a row for each offer that could be made in each negotiation, up to
	// 100 kB of it for each.
	Utilities bool
	// Tracked has the logs that scml_analyzer's tracker writes of the agents that are scored.
	Tracked bool
}

// Folder writes the folder of a world that is being played. It is not safe for concurrent use.
type Folder struct {
	dir, partial string
	o            Options
	w            *world.World
	// ids and types are those of agents, SELLER and BUYER last.
	ids, types []string

	negotiations, negs, actions, stats, simsteps *table
	// events and log have lines in place of rows; utilities is nil where it is not asked for.
	events, log, utilities *table
	// firsts has how many contracts there were before each day.
	firsts []int
	// trackers are those of agents, nil where nobody is tracked.
	trackers []*tracker
	// err is the first error of the files of negotiations.
	err error

	talks map[between]*talk
	spare []*talk
	// opened, acted and ended count negotiations, offers, and negotiations that have ended.
	opened, acted, ended int
	agreements           map[int]agreement
	counters             []counters
	today                dayCounts
	hash                 hash.Hash
	sum                  [sha256.Size]byte
	cell                 []byte
}

// agreement is what a contract refers to.
type agreement struct {
	id     string
	caller int
	box    negotiation.Box
}

// dayCounts are of the negotiations that ended on a day; rounds count one more than were complete.
type dayCounts struct {
	// begun says that something was written of the day.
	day   int
	begun bool

	succeeded, succeededRounds, failed, failedRounds int
}

// Create begins the folder of a world before its first day, and watches its negotiations. The
// folder must not exist; it does when it is closed.
func Create(dir string, w *world.World, o Options) (*Folder, error) {
	dir = filepath.Clean(dir)
	if _, err := os.Lstat(dir); err == nil {
		return nil, fmt.Errorf("%s exists; choose another folder", dir)
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	f := &Folder{dir: dir, partial: dir + partialSuffix, o: o, w: w, talks: map[between]*talk{}, agreements: map[int]agreement{}, firsts: []int{0}, hash: sha256.New()}
	c := w.Config()
	for i := range c.Factories {
		f.ids, f.types = append(f.ids, c.Factories[i].ID), append(f.types, typePrefix+c.Factories[i].Type)
	}
	f.ids, f.types = append(f.ids, world.Seller, world.Buyer), append(f.types, "System", "System")
	f.counters = make([]counters, len(f.ids))
	// The rest of a run that was killed is not continued.
	if err := errors.Join(os.RemoveAll(f.partial), os.MkdirAll(f.partial, 0o755)); err != nil {
		return nil, err
	}
	if o.Negotiations {
		if err := os.Mkdir(filepath.Join(f.partial, negotiationsDir), 0o755); err != nil {
			return nil, errors.Join(err, f.Discard())
		}
	}
	for _, t := range f.tables() {
		var err error
		if *t.to, err = newTable(f.partial, t.name, t.columns...); err != nil {
			return nil, errors.Join(err, f.Discard())
		}
	}
	if err := f.begin(); err != nil {
		return nil, errors.Join(err, f.Discard())
	}
	f.joined()
	if o.Tracked {
		if err := f.track(); err != nil {
			return nil, errors.Join(err, f.Discard())
		}
	}
	w.Watch(f)
	return f, nil
}

// namedTable is one of the tables that grow with the days.
type namedTable struct {
	to      **table
	name    string
	columns []string
}

// tables lists what is written while the world is played.
func (f *Folder) tables() []namedTable {
	list := []namedTable{
		{&f.negotiations, "negotiations.csv", negotiationColumns}, {&f.negs, "negs.csv", negColumns}, {&f.actions, "actions.csv", actionColumns}, {&f.stats, "stats.csv", f.statColumns()}, {&f.simsteps, "simsteps.csv", simstepColumns},
		{&f.events, "events.json", nil}, {&f.log, "log.txt", nil},
	}
	if f.o.Utilities {
		list = append(list, namedTable{&f.utilities, "ufuns.csv", utilityColumns})
	}
	return list
}

// Day writes what came of the day that was settled.
func (f *Folder) Day() error {
	f.stat()
	f.simstep()
	f.closing()
	f.today = dayCounts{day: f.w.Today() + 1}
	if f.err != nil {
		return f.err
	}
	for _, t := range f.tables() {
		if err := (*t.to).err; err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(f.partial, t.name), err)
		}
	}
	return nil
}

// Close writes the rest, and the folder is there. After an error there is none.
func (f *Folder) Close() error {
	f.w.Watch(nil)
	err := f.closeTables()
	if err == nil {
		err = f.closeTrackers(true)
	}
	if err == nil {
		err = f.finish()
	}
	if err == nil {
		err = os.Rename(f.partial, f.dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(f.partial))
	}
	return nil
}

// closeTables closes those that are open.
func (f *Folder) closeTables() (err error) {
	for _, t := range f.tables() {
		if *t.to == nil {
			continue
		}
		if e := (*t.to).close(); e != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", filepath.Join(f.partial, t.name), e))
		}
		*t.to = nil
	}
	return err
}

// Discard gives the folder up: nothing is left of it.
func (f *Folder) Discard() error {
	f.w.Watch(nil)
	// Nobody wants the data that cannot be flushed.
	_ = errors.Join(f.closeTables(), f.closeTrackers(false))
	return os.RemoveAll(f.partial)
}

// shortType is the name of a type without its module.
func shortType(t string) string { return t[strings.LastIndexAny(t, ".:")+1:] }
