package split

import (
	"fmt"

	"gonum.org/v1/gonum/stat/combin"
)

// Fold is one pair of training and test positions, each ascending.
type Fold struct {
	Train, Test []int
	// Groups are the numbers of the blocks the test set consists of.
	Groups []int
}

// CombinatorialPurged cuts the positions into blocks and tests on every choice of a number of
// blocks (López de Prado, Advances in Financial Machine Learning, chapter 12).
type CombinatorialPurged struct {
	// Blocks is the number of blocks, TestBlocks how many of them are tested on at a time.
	Blocks, TestBlocks int
	// Purge positions on both sides of a test block are left out of training, Embargo further ones
	// after it.
	Purge, Embargo int
}

// maxFolds bounds the number of combinations.
const maxFolds = 100_000

// Folds returns the folds of n positions, test blocks in lexical order.
func (c CombinatorialPurged) Folds(n int) ([]Fold, error) {
	switch {
	case c.Blocks < 2 || c.TestBlocks < 1 || c.TestBlocks >= c.Blocks || c.Purge < 0 || c.Embargo < 0:
		return nil, fmt.Errorf("combinatorial folds: %d of %d blocks, purge %d, embargo %d: expected at least one test block and one other, and nothing negative", c.TestBlocks, c.Blocks, c.Purge, c.Embargo)
	case n < c.Blocks:
		return nil, fmt.Errorf("combinatorial folds: %d positions cannot make %d blocks", n, c.Blocks)
	case c.Blocks > 64 || combin.Binomial(c.Blocks, c.TestBlocks) > maxFolds:
		return nil, fmt.Errorf("combinatorial folds: choosing %d of %d blocks gives more than %d folds", c.TestBlocks, c.Blocks, maxFolds)
	}
	starts := c.starts(n)
	var folds []Fold
	for _, groups := range combin.Combinations(c.Blocks, c.TestBlocks) {
		tested, barred := make([]bool, n), make([]bool, n)
		for _, g := range groups {
			for i := starts[g]; i < starts[g+1]; i++ {
				tested[i] = true
			}
			for i := max(0, starts[g]-c.Purge); i < min(n, starts[g+1]+c.Purge+c.Embargo); i++ {
				barred[i] = true
			}
		}
		f := Fold{Groups: groups}
		for i := range n {
			switch {
			case tested[i]:
				f.Test = append(f.Test, i)
			case !barred[i]:
				f.Train = append(f.Train, i)
			}
		}
		if len(f.Train) == 0 {
			return nil, fmt.Errorf("combinatorial folds: with the blocks %v as test set, purging leaves nothing to train on", groups)
		}
		folds = append(folds, f)
	}
	return folds, nil
}

// starts are the positions at which blocks begin, and n. The first blocks are one longer where n
// does not divide evenly.
func (c CombinatorialPurged) starts(n int) []int {
	starts := make([]int, c.Blocks+1)
	for b := range c.Blocks {
		starts[b+1] = starts[b] + n/c.Blocks
		if b < n%c.Blocks {
			starts[b+1]++
		}
	}
	return starts
}

// Paths is the number of complete test histories that the folds can be joined into: every block is
// tested equally often.
func (c CombinatorialPurged) Paths() int {
	return combin.Binomial(c.Blocks, c.TestBlocks) * c.TestBlocks / c.Blocks
}
