package evolve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// MemberKind is the kind of versions that say how a member of a search came to be what it is: of
// data, in the store of the search, whose file LogFile has the records of the generations in which
// it went on from itself. Their parents are what it had taken over before the first of them: the
// weights, and the hyper-parameters where they are another's.
const MemberKind = "member"

// genealogy publishes what the records of a search say of its members. It is safe for concurrent use.
type genealogy struct {
	dir, name, metric string

	mu   sync.Mutex
	made map[place]string
}

// place is a member after a generation.
type place struct{ generation, member int }

func newGenealogy(dir, name, metric string) *genealogy {
	return &genealogy{dir: dir, name: publish.ArtefactName(name) + "-members", metric: metric, made: map[place]string{}}
}

// of publishes how the state of a record came to be, ancestors first, and returns the digest of the
// version. The same records give the same versions.
func (g *genealogy) of(ctx context.Context, records [][]Record, r Record) (digest string, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, err := artifact.Open(filepath.Join(g.dir, publish.StoreDir), artifact.Options{Now: time.Now})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return g.version(ctx, s, records, r)
}

func (g *genealogy) version(ctx context.Context, s *artifact.Store, records [][]Record, r Record) (string, error) {
	r = stateOf(records, r)
	at := place{r.Generation, r.Member}
	if d := g.made[at]; d != "" {
		return d, nil
	}
	line := lineOf(records, r)
	first := line[0]
	var parents []string
	for _, from := range []int{first.Parent, first.HyperFrom} {
		if from < 0 || records[first.Generation-1][from].Dir == "" {
			continue
		}
		d, err := g.version(ctx, s, records, records[first.Generation-1][from])
		if err != nil {
			return "", err
		}
		if !slices.Contains(parents, d) {
			parents = append(parents, d)
		}
	}
	var log bytes.Buffer
	for _, x := range line {
		text, err := json.Marshal(x)
		if err != nil {
			return "", err
		}
		log.Write(append(text, '\n'))
	}
	m := artifact.Manifest{
		Name: g.name, Kind: MemberKind, Description: describe(line), Parents: parents, Seed: &r.Seed, EnvStep: r.EnvSteps, Metrics: map[string]float64{},
		Info: map[string]string{"action": first.Action, "member": strconv.Itoa(r.Member), "generations": generations(line), "state_sha256": r.SHA256},
	}
	if r.Score.Defined() {
		m.Metrics["validation/"+g.metric] = float64(r.Score)
	}
	for path, x := range sorted.All(r.Values) {
		m.Info["values/"+path] = strconv.FormatFloat(x, 'g', -1, 64)
	}
	v, err := s.Publish(ctx, artifact.Draft{
		Manifest: m, Data: true, Files: []artifact.NewFile{{Title: LogFile, Data: log.Bytes()}},
		Aliases: []string{fmt.Sprintf("generation-%04d-member-%03d", r.Generation, r.Member)},
	})
	g.made[at] = v.Digest
	return v.Digest, err
}

// stateOf is the record whose state a record has: one that was rolled back has its parent's.
func stateOf(records [][]Record, r Record) Record {
	for r.RolledBack != "" && r.Parent >= 0 {
		r = records[r.Generation-1][r.Parent]
	}
	return r
}

// lineOf are the records in which a member went on from itself with what it had, the last of which
// is r.
func lineOf(records [][]Record, r Record) []Record {
	line := []Record{r}
	for line[0].Action == Keep && line[0].Parent >= 0 {
		from := stateOf(records, records[line[0].Generation-1][line[0].Parent])
		if from.Member != r.Member || line[0].HyperFrom != r.Member {
			break
		}
		line = slices.Insert(line, 0, from)
	}
	return line
}

// generations are the first and the last of a line.
func generations(line []Record) string {
	first, last := line[0].Generation, line[len(line)-1].Generation
	if first == last {
		return strconv.Itoa(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// describe says what a member has begun a line with.
func describe(line []Record) string {
	first := line[0]
	var began string
	switch {
	case first.Parent < 0 && first.Action == Restart:
		began = "restarted"
	case first.Parent < 0:
		began = "begun with parameters of its own"
	case first.Action == Clone:
		began = fmt.Sprintf("clone of member %d", first.Parent)
	case first.Action == Migrate:
		began = fmt.Sprintf("weights of member %d of another sub-population", first.Parent)
	default:
		began = fmt.Sprintf("gone on from member %d", first.Parent)
	}
	if first.HyperFrom >= 0 && first.HyperFrom != first.Parent {
		began += fmt.Sprintf(", hyper-parameters of member %d", first.HyperFrom)
	}
	return fmt.Sprintf("member %d, generations %s: %s", first.Member, generations(line), began)
}
