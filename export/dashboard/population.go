package dashboard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml"

	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// PopulationData is a population: every generation of every member, as members.jsonl has it.
type PopulationData struct {
	Item
	Generations [][]Member `json:"generations"`
	// MAPD is the mean of the members' distances after each generation.
	MAPD []performance.Number `json:"mapd"`
	// Paths are the key paths of the hyper-parameters.
	Paths    []string `json:"paths"`
	Document string   `json:"document"`
	// Metric is what members are compared by; Minimize says that less of it is better.
	Metric   string `json:"metric"`
	Minimize bool   `json:"minimize"`
	// Replay is whose transitions the members learn from, in the newest generation that says so.
	Replay *ReplayMix `json:"replay"`
	// Usage is how a router uses its experts; nil of what is no router, or not published.
	Usage *RouterUsage `json:"usage"`
	// Dropped is how many lines at the end are of a generation that is not whole.
	Dropped int `json:"dropped"`
}

// Member is a generation of a member.
type Member struct {
	Generation int                           `json:"generation"`
	Member     int                           `json:"member"`
	Action     string                        `json:"action"`
	Parent     int                           `json:"parent"`
	HyperFrom  int                           `json:"hyper_from"`
	Values     map[string]performance.Number `json:"values"`
	EnvSteps   int64                         `json:"env_steps"`
	Score      performance.Number            `json:"score"`
	Distance   performance.Number            `json:"distance"`
	Dir        string                        `json:"dir"`
	RolledBack string                        `json:"rolled_back,omitempty"`
}

// ReplayMix says of each member whose transitions it learns from: in row i, column j, the share of
// what member i drew last that policy j had recorded, and the mean age of that in transitions.
type ReplayMix struct {
	Generation int                    `json:"generation"`
	Members    []int                  `json:"members"`
	Policies   []int                  `json:"policies"`
	Share      [][]performance.Number `json:"share"`
	Age        [][]performance.Number `json:"age"`
}

// RouterUsage is what a published router chooses on its recorded observations.
type RouterUsage struct {
	Artefact string `json:"artefact"`
	// Rows is how many observations were recorded; Chosen how many of them chose each expert, and
	// Probability the mean probability of each.
	Rows        int       `json:"rows"`
	Chosen      []int     `json:"chosen"`
	Probability []float64 `json:"probability"`
}

// mostMembers is the most members of a generation.
const mostMembers = 1 << 12

// Population reads a population. What is of a generation that is not whole is left out.
func (b *Board) Population(id string) (*PopulationData, error) {
	it, err := b.item(Population, id)
	if err != nil {
		return nil, err
	}
	text, err := readFile(filepath.Join(it.path, membersFile))
	if err != nil {
		return nil, fmt.Errorf("population %s: %w", id, err)
	}
	d := &PopulationData{Item: it, Generations: [][]Member{}, MAPD: []performance.Number{}, Paths: []string{}}
	if document, err := readFile(filepath.Join(it.path, "evolution.yaml")); err == nil {
		d.Document = string(document)
		var c struct {
			Search struct {
				Metric    string `yaml:"metric"`
				Direction string `yaml:"direction"`
			} `yaml:"search"`
		}
		// Of one that cannot be read it is shown that way.
		if yaml.Unmarshal(document, &c) == nil {
			d.Metric, d.Minimize = c.Search.Metric, c.Search.Direction == "minimize"
		}
	}
	// A last line without its end is being written.
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	number := 0
	for line := range bytes.Lines(text) {
		number++
		m := Member{Score: performance.Number(nan), Distance: performance.Number(nan)}
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("population %s: %s:%d: %w", id, membersFile, number, err)
		}
		if m.Member < 0 || m.Member >= mostMembers || m.Parent < -1 || m.Parent >= mostMembers {
			return nil, fmt.Errorf("population %s: %s:%d: member %d, parent %d, expected less than %d", id, membersFile, number, m.Member, m.Parent, mostMembers)
		}
		g := len(d.Generations)
		switch {
		case m.Generation == g:
			d.Generations = append(d.Generations, []Member{m})
		case m.Generation == g-1:
			d.Generations[g-1] = append(d.Generations[g-1], m)
		default:
			return nil, fmt.Errorf("population %s: %s:%d: it is of generation %d, expected %d", id, membersFile, number, m.Generation, g)
		}
	}
	if n := len(d.Generations); n > 1 && len(d.Generations[n-1]) < len(d.Generations[0]) {
		d.Dropped = len(d.Generations[n-1])
		d.Generations = d.Generations[:n-1]
	}
	for _, list := range d.Generations {
		slices.SortStableFunc(list, func(x, y Member) int { return cmp.Compare(x.Member, y.Member) })
		sum, n := 0.0, 0.0
		for _, m := range list {
			if m.Distance.Defined() {
				sum, n = sum+float64(m.Distance), n+1
			}
		}
		d.MAPD = append(d.MAPD, performance.Number(sum/n))
	}
	if len(d.Generations) > 0 {
		for path := range sorted.All(d.Generations[0][0].Values) {
			d.Paths = append(d.Paths, path)
		}
	}
	if err := d.readReplay(); err != nil {
		return nil, fmt.Errorf("population %s: %w", id, err)
	}
	if err := d.readUsage(); err != nil {
		return nil, fmt.Errorf("population %s: %w", id, err)
	}
	return d, nil
}

var policyTag = regexp.MustCompile(`^replay/policy_(\d+)/(share|age)$`)

// readReplay fills in the mix of the newest generation that has one.
func (d *PopulationData) readReplay() error {
	for g := len(d.Generations) - 1; g >= 0 && d.Replay == nil; g-- {
		list := d.Generations[g]
		mix := ReplayMix{Generation: g, Members: []int{}}
		shares, ages := make([]map[int]float64, len(list)), make([]map[int]float64, len(list))
		policies := 0
		for i, m := range list {
			mix.Members = append(mix.Members, m.Member)
			shares[i], ages[i] = map[int]float64{}, map[int]float64{}
			if m.Dir == "" || !filepath.IsLocal(m.Dir) {
				continue
			}
			err := lastLines(filepath.Join(d.path, m.Dir, metricsFile), func(l *metricsLine) bool {
				for _, p := range l.pairs {
					match := policyTag.FindSubmatch(p.tag)
					if match == nil {
						continue
					}
					j, err := strconv.Atoi(string(match[1]))
					if err != nil || j >= mostMembers {
						continue
					}
					policies = max(policies, j+1)
					if string(match[2]) == "share" {
						shares[i][j] = p.value
					} else {
						ages[i][j] = p.value
					}
				}
				return len(shares[i]) > 0
			})
			if err != nil {
				return err
			}
		}
		if policies == 0 {
			// Members of one generation are alike: those before have none either.
			return nil
		}
		for j := range policies {
			mix.Policies = append(mix.Policies, j)
		}
		for i := range list {
			s, a := make([]performance.Number, policies), make([]performance.Number, policies)
			for j := range policies {
				s[j], a[j] = numberOf(shares[i], j), numberOf(ages[i], j)
			}
			mix.Share, mix.Age = append(mix.Share, s), append(mix.Age, a)
		}
		d.Replay = &mix
	}
	return nil
}

// numberOf is NaN for what a map does not have.
func numberOf(m map[int]float64, j int) performance.Number {
	if v, ok := m[j]; ok {
		return performance.Number(v)
	}
	return performance.Number(nan)
}

// lastLines calls f with the lines of metrics at the end of a file, the newest first, until it
// returns true. A file that is not there has none.
func lastLines(path string, f func(*metricsLine) bool) error {
	file, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	from := max(0, info.Size()-(256<<10))
	text, err := io.ReadAll(io.LimitReader(io.NewSectionReader(file, from, info.Size()-from), 256<<10))
	if err != nil {
		return err
	}
	lines := bytes.Split(text, []byte("\n"))
	if from > 0 {
		lines = lines[1:] // It may begin within a line.
	}
	var line metricsLine
	// The text behind the last end of a line is being written.
	end := from + int64(bytes.LastIndexByte(text, '\n')+1)
	for _, l := range slices.Backward(lines[:len(lines)-1]) {
		end -= int64(len(l) + 1)
		if err := line.parse(l); err != nil {
			return fmt.Errorf("%s: the line at byte %d: %w", path, end, err)
		}
		if f(&line) {
			return nil
		}
	}
	return nil
}

// readUsage looks for the newest published router among the members.
func (d *PopulationData) readUsage() error {
	for _, list := range slices.Backward(d.Generations) {
		for _, m := range list {
			if m.Dir == "" || !filepath.IsLocal(m.Dir) {
				continue
			}
			dir := filepath.Join(d.path, m.Dir, "artifacts")
			s, err := artifact.Open(dir, artifact.Options{MustExist: true})
			if err != nil {
				continue // Nothing was published there.
			}
			u, err := usageOf(s)
			if err = errors.Join(err, s.Close()); err != nil {
				return err
			}
			if u != nil {
				d.Usage = u
				return nil
			}
		}
	}
	return nil
}

// usageOf is nil where a store has no router.
func usageOf(s *artifact.Store) (*RouterUsage, error) {
	versions, err := s.List()
	if err != nil {
		return nil, err
	}
	for _, v := range versions {
		if _, ok := v.Manifest.Info["experts[0]_sha256"]; !ok || v.Manifest.Golden == nil {
			continue
		}
		g, err := v.Golden()
		if err != nil {
			return nil, err
		}
		probs := g.Outputs[logProbsOutput]
		action := g.Outputs[actionOutput]
		if probs == nil || action == nil || probs.Rank() != 2 || action.Rank() != 1 {
			continue
		}
		rows, n := probs.Shape()[0], probs.Shape()[1]
		u := &RouterUsage{Artefact: v.String(), Rows: rows, Chosen: make([]int, n), Probability: make([]float64, n)}
		logs, actions := probs.Float32s(), action.Int64s()
		for i := range rows {
			if a := actions[i]; a >= 0 && int(a) < n {
				u.Chosen[a]++
			}
			for j, p := range probabilities(logs[i*n : (i+1)*n]) {
				u.Probability[j] += p / float64(rows)
			}
		}
		return u, nil
	}
	return nil, nil
}
