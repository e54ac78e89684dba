package optim

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/glob"
)

// Param is a named parameter: Len elements from Offset of an arena.
type Param struct {
	Name   string
	Offset int
	Len    int
}

// Unmatched returns the patterns of c that match none of list, in order: most
// likely misspelt, but some recipes name parameters not every network has.
func (c Config) Unmatched(list []Param) []string {
	var out []string
	patterns := slices.Clone(c.NoDecay)
	for _, o := range c.Overrides {
		patterns = append(patterns, o.Params...)
	}
	for _, p := range patterns {
		if !slices.ContainsFunc(list, func(q Param) bool { return glob.Match(p, q.Name) }) {
			out = append(out, p)
		}
	}
	return out
}

// Groups splits the parameters of list, which lie in the arena params with
// their gradients in the arena grads of the same layout, into groups by the
// learning rate and decay that c gives them. Neighbours with the same settings
// share a group, together with the alignment padding of less than 64 bytes
// between them; other elements belong to no group. The groups alias the arenas.
func Groups(c Config, params, grads []float32, list []Param) ([]Group, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("group parameters: %w", err)
	}
	if len(params) != len(grads) {
		return nil, fmt.Errorf("group parameters: arenas of %d parameters and %d gradients", len(params), len(grads))
	}
	k, _ := c.lookup()
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b Param) int { return a.Offset - b.Offset })
	var groups []Group
	end := 0
	for _, p := range sorted {
		if p.Offset < 0 || p.Len < 0 || p.Len > len(params)-p.Offset {
			return nil, fmt.Errorf("group parameters: %s: elements %d to %d of an arena of %d", p.Name, p.Offset, p.Offset+p.Len, len(params))
		}
		if p.Len == 0 {
			continue
		}
		if p.Offset < end {
			return nil, fmt.Errorf("group parameters: %s overlaps its predecessor at element %d", p.Name, p.Offset)
		}
		g := c.group(p)
		if n := len(groups); n > 0 && !k.perLayer {
			last := &groups[n-1]
			adjacent := p.Offset == end || p.Offset == roundUp(end)
			if adjacent && last.LR == g.LR && last.LRScale == g.LRScale && last.Decay == g.Decay {
				last.Members = append(last.Members, p)
				end = p.Offset + p.Len
				continue
			}
		}
		groups = append(groups, g)
		end = p.Offset + p.Len
	}
	for i := range groups {
		g := &groups[i]
		last := g.Members[len(g.Members)-1]
		g.Name = g.Members[0].Name
		if len(g.Members) > 1 {
			g.Name += " to " + last.Name
		}
		g.Params = params[g.Offset : last.Offset+last.Len]
		g.Grads = grads[g.Offset : last.Offset+last.Len]
	}
	return groups, nil
}

// group returns the group of p alone, without its slices.
func (c Config) group(p Param) Group {
	g := Group{Offset: p.Offset, LRScale: 1, Decay: float32(c.Decay), Members: []Param{p}}
	if glob.MatchAny(c.NoDecay, p.Name) {
		g.Decay = 0
	}
	for _, o := range c.Overrides {
		if !glob.MatchAny(o.Params, p.Name) {
			continue
		}
		if o.LRScale != 0 {
			g.LRScale = float32(o.LRScale)
		}
		if o.Decay != nil {
			g.Decay = float32(*o.Decay)
		}
		break
	}
	g.LR = float32(c.LR * float64(g.LRScale))
	return g
}
