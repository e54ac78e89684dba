package replay

// sumTree keeps weights and finds the one that a point of their sum falls on. Node 1 is the root,
// node i has the children 2i and 2i+1, and the weights are the leaves. Every node is the sum of its
// children as computed, so that nothing drifts however often weights change.
type sumTree struct {
	leaves int
	node   []float64
}

func newSumTree(n int) *sumTree {
	leaves := 1
	for leaves < n {
		leaves *= 2
	}
	return &sumTree{leaves, make([]float64, 2*leaves)}
}

func (t *sumTree) total() float64       { return t.node[1] }
func (t *sumTree) weight(i int) float64 { return t.node[t.leaves+i] }
func (t *sumTree) set(i int, w float64) { t.put(i, w); t.sum(i) }
func (t *sumTree) put(i int, w float64) { t.node[t.leaves+i] = w }

// sum brings the nodes above a weight up to date.
func (t *sumTree) sum(i int) {
	for i = (t.leaves + i) / 2; i > 0; i /= 2 {
		t.node[i] = t.node[2*i] + t.node[2*i+1]
	}
}

// sumAll brings all nodes up to date.
func (t *sumTree) sumAll() {
	for i := t.leaves - 1; i > 0; i-- {
		t.node[i] = t.node[2*i] + t.node[2*i+1]
	}
}

// find replaces points in [0, total) by the weights that they fall on, into at. All points go down
// a level together: their reads do not wait for each other. points is overwritten. A weight of 0 is
// never found, whatever rounding does, unless all are 0.
func (t *sumTree) find(points []float64, at []int) {
	for i := range at {
		at[i] = 1
	}
	for width := 1; width < t.leaves; width *= 2 {
		for i, k := range at {
			left, right := t.node[2*k], t.node[2*k+1]
			// Nobody can predict where points go, so there is no branch: beyond is 1 for right.
			beyond, some := 0, 0
			if points[i] >= left {
				beyond = 1
			}
			if right > 0 {
				some = 1
			}
			beyond &= some
			points[i] -= left * float64(beyond)
			at[i] = 2*k + beyond
		}
	}
	for i := range at {
		at[i] -= t.leaves
	}
}
