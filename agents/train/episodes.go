package train

import "math"

// episodeWindow is the number of episodes that rollout/ep_rew_mean and rollout/ep_len_mean average over, as in Stable-Baselines3.
const episodeWindow = 100

// window holds the returns and lengths of the last episodes, the oldest first.
type window struct{ returns, lengths []float64 }

func newWindow() window {
	return window{make([]float64, 0, episodeWindow), make([]float64, 0, episodeWindow)}
}

func (w *window) add(ret, length float64) {
	if len(w.returns) == episodeWindow {
		copy(w.returns, w.returns[1:])
		copy(w.lengths, w.lengths[1:])
		w.returns, w.lengths = w.returns[:episodeWindow-1], w.lengths[:episodeWindow-1]
	}
	w.returns, w.lengths = append(w.returns, ret), append(w.lengths, length)
}

// means returns NaN before the first episode has ended. The sums run from the oldest to the newest, so a restored window gives the same bits.
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
