package train

import "math"

// episodeWindow is the number of episodes that rollout/ep_rew_mean and rollout/ep_len_mean average
// over, as in Stable-Baselines3.
const episodeWindow = 100

// window holds the returns, lengths and costs of the last episodes, the oldest first, and whether
// they were successes, for environments that say so.
type window struct {
	returns, lengths, successes []float64
	// costs are those of the spec.
	costs [][]float64
}

func newWindow(costs int) window {
	room := func() []float64 { return make([]float64, 0, episodeWindow) }
	w := window{returns: room(), lengths: room(), successes: room()}
	for range costs {
		w.costs = append(w.costs, room())
	}
	return w
}

func (w *window) add(ret, length float64) {
	w.returns, w.lengths = slide(w.returns, ret), slide(w.lengths, length)
}

// slide appends x and forgets the oldest element of a full window.
func slide(list []float64, x float64) []float64 {
	if len(list) == episodeWindow {
		copy(list, list[1:])
		list = list[:episodeWindow-1]
	}
	return append(list, x)
}

// mean returns that of a list, which is not empty.
func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x
	}
	return sum / float64(len(list))
}

// means returns NaN before the first episode has ended. The sums run from the oldest to the newest,
// so a restored window gives the same bits.
func (w *window) means() (ret, length float64) {
	if len(w.returns) == 0 {
		return math.NaN(), math.NaN()
	}
	for i, r := range w.returns {
		ret += r
		length += w.lengths[i]
	}
	n := float64(len(w.returns))
	return ret / n, length / n
}
