package onnx

import (
	"cmp"
	"slices"
)

// The layout follows Sugiyama, Tagawa and Toda (1981). Boxes are put on layers by their longest
// path from a source, and edges that cross layers get a bend on each. Barycentres improve the
// order inside the layers to reduce crossings, and then boxes are pulled towards their neighbours
// without overlapping.

// spot is a box, or a bend of an edge, with its place in the picture. x and y are its centre.
type spot struct {
	box    int // -1 for a bend
	layer  int
	x, y   float64
	w, h   float64
	up, dn []int // neighbours on the layers above and below
	bary   float64
}

type layout struct {
	spots         []spot
	layers        [][]int
	paths         [][]int // per edge, the spots it passes, from source to target
	width, height float64
}

const (
	gapX   = 24.0
	gapY   = 44.0
	sweeps = 12
)

// arrange lays out a drawing whose boxes have the given sizes.
func arrange(d *drawing, size func(int) (w, h float64)) *layout {
	l := &layout{paths: make([][]int, len(d.edges))}
	rank := ranks(d)
	for i := range d.boxes {
		w, h := size(i)
		l.spots = append(l.spots, spot{box: i, layer: rank[i], w: w, h: h})
	}
	for i, e := range d.edges {
		path := []int{e.from}
		for r := rank[e.from] + 1; r < rank[e.to]; r++ {
			l.spots = append(l.spots, spot{box: -1, layer: r, w: 6})
			path = append(path, len(l.spots)-1)
		}
		path = append(path, e.to)
		l.paths[i] = path
		if rank[e.from] >= rank[e.to] {
			// Only a cycle makes an edge that does not lead down; it is drawn straight.
			continue
		}
		for k := 1; k < len(path); k++ {
			l.spots[path[k-1]].dn = append(l.spots[path[k-1]].dn, path[k])
			l.spots[path[k]].up = append(l.spots[path[k]].up, path[k-1])
		}
	}
	for i, s := range l.spots {
		for len(l.layers) <= s.layer {
			l.layers = append(l.layers, nil)
		}
		l.layers[s.layer] = append(l.layers[s.layer], i)
	}
	l.order()
	l.place()
	return l
}

// ranks returns a layer for each box: the longest path from a source, with sources moved down to
// just above what they feed.
func ranks(d *drawing) []int {
	n := len(d.boxes)
	next := make([][]int, n)
	missing := make([]int, n)
	for _, e := range d.edges {
		next[e.from] = append(next[e.from], e.to)
		missing[e.to]++
	}
	rank := make([]int, n)
	done := make([]bool, n)
	var queue []int
	for i := range n {
		if missing[i] == 0 {
			queue = append(queue, i)
		}
	}
	for finished := 0; finished < n; {
		if len(queue) == 0 {
			// The boxes left lie on cycles: the first box left is taken as if its other inputs
			// were there.
			queue = append(queue, slices.Index(done, false))
		}
		u := queue[0]
		queue = queue[1:]
		if done[u] {
			continue
		}
		done[u] = true
		finished++
		for _, v := range next[u] {
			if done[v] {
				continue
			}
			rank[v] = max(rank[v], rank[u]+1)
			if missing[v]--; missing[v] == 0 {
				queue = append(queue, v)
			}
		}
	}
	fed := make([]bool, n)
	for _, e := range d.edges {
		fed[e.to] = true
	}
	for i := range n {
		if !fed[i] && len(next[i]) > 0 {
			low := rank[next[i][0]]
			for _, v := range next[i] {
				low = min(low, rank[v])
			}
			rank[i] = max(low-1, 0)
		}
	}
	return rank
}

// order sorts every layer by the mean place of its neighbours, downwards and upwards in turn.
func (l *layout) order() {
	place := make([]float64, len(l.spots))
	number := func(layer []int) {
		for i, s := range layer {
			place[s] = float64(i)
		}
	}
	for _, layer := range l.layers {
		number(layer)
	}
	sortBy := func(layer []int, near func(*spot) []int) {
		for _, i := range layer {
			s := &l.spots[i]
			s.bary = place[i]
			if ns := near(s); len(ns) > 0 {
				s.bary = 0
				for _, n := range ns {
					s.bary += place[n] / float64(len(ns))
				}
			}
		}
		slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(l.spots[a].bary, l.spots[b].bary) })
		number(layer)
	}
	for range sweeps {
		for i := 1; i < len(l.layers); i++ {
			sortBy(l.layers[i], func(s *spot) []int { return s.up })
		}
		for i := len(l.layers) - 2; i >= 0; i-- {
			sortBy(l.layers[i], func(s *spot) []int { return s.dn })
		}
	}
}

// place gives coordinates: layers from top to bottom, boxes pulled to the mean of their neighbours.
func (l *layout) place() {
	y := 0.0
	for _, layer := range l.layers {
		h := 0.0
		x := 0.0
		for _, i := range layer {
			s := &l.spots[i]
			h = max(h, s.h)
			s.x = x + s.w/2
			x += s.w + gapX
		}
		for _, i := range layer {
			l.spots[i].y = y + h/2
		}
		y += h + gapY
	}
	for sweep := range 2 * sweeps {
		for k := range l.layers {
			layer := l.layers[k]
			if sweep%2 == 1 {
				layer = l.layers[len(l.layers)-1-k]
			}
			l.pull(layer)
		}
	}
	left, right := 0.0, 0.0
	for i, s := range l.spots {
		if i == 0 || s.x-s.w/2 < left {
			left = s.x - s.w/2
		}
		if i == 0 || s.x+s.w/2 > right {
			right = s.x + s.w/2
		}
	}
	for i := range l.spots {
		l.spots[i].x -= left
	}
	l.width, l.height = right-left, max(y-gapY, 0)
}

// pull moves the spots of a layer to where they want to be. Where they would overlap, the touching
// ones form a block that goes to the mean of its members' wishes.
func (l *layout) pull(layer []int) {
	type block struct {
		from, to int // of the layer
		x        float64
		weight   float64
	}
	offset := make([]float64, len(layer)) // of each spot from the first of its block
	want := make([]float64, len(layer))
	for i, id := range layer {
		s := &l.spots[id]
		want[i] = s.x
		if n := len(s.up) + len(s.dn); n > 0 {
			want[i] = 0
			for _, k := range s.up {
				want[i] += l.spots[k].x / float64(n)
			}
			for _, k := range s.dn {
				want[i] += l.spots[k].x / float64(n)
			}
		}
	}
	var blocks []block
	for i := range layer {
		b := block{from: i, to: i + 1, x: want[i], weight: 1}
		offset[i] = 0
		for len(blocks) > 0 {
			p := blocks[len(blocks)-1]
			lastID := layer[p.to-1]
			need := offset[p.to-1] + l.spots[lastID].w/2 + gapX + l.spots[layer[b.from]].w/2
			if p.x+need <= b.x {
				break
			}
			for k := b.from; k < b.to; k++ {
				offset[k] += need
			}
			p.x = (p.x*p.weight + (b.x-need)*b.weight) / (p.weight + b.weight)
			p.weight += b.weight
			p.to = b.to
			b = p
			blocks = blocks[:len(blocks)-1]
		}
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		for k := b.from; k < b.to; k++ {
			l.spots[layer[k]].x = b.x + offset[k]
		}
	}
}
