package performance

import "math"

// WinRate is the share of returns above 0 among those that are not 0. It is NaN where all are.
func WinRate(r []float64) float64 {
	var win, moved float64
	for _, x := range r {
		if x > 0 {
			win++
		}
		if x > 0 || x < 0 {
			moved++
		}
	}
	return ratio(win, moved)
}

// ProfitFactor is the sum of gains over the sum of losses. It is NaN without a loss.
func ProfitFactor(r []float64) float64 { return ratio(gainAndLoss(r)) }

// AverageWin is the mean of returns above 0.
func AverageWin(r []float64) float64 { return meanWhere(r, func(x float64) bool { return x > 0 }) }

// AverageLoss is the mean of returns below 0.
func AverageLoss(r []float64) float64 { return meanWhere(r, func(x float64) bool { return x < 0 }) }

// Payoff is the average win over the size of the average loss. It is NaN where there is only one of
// them.
func Payoff(r []float64) float64 { return ratio(AverageWin(r), -AverageLoss(r)) }

// Kelly is the fraction of capital to bet on outcomes with this win rate and payoff, w −
// (1−w)/payoff (Kelly 1956).
func Kelly(r []float64) float64 {
	w := WinRate(r)
	return w - ratio(1-w, Payoff(r))
}

// RiskOfRuin is ((1−w)/(1+w))^n with the win rate w and n returns, as in QuantStats.
func RiskOfRuin(r []float64) float64 {
	w := WinRate(r)
	return math.Pow((1-w)/(1+w), float64(len(Present(r))))
}

// LongestRun is the largest number of returns in a row that are above 0 (sign 1) or below 0 (sign
// −1).
func LongestRun(r []float64, sign float64) int {
	longest, run := 0, 0
	for _, x := range r {
		if run++; !(x*sign > 0) {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest
}

func gainAndLoss(r []float64) (gain, loss float64) {
	for _, x := range r {
		if x > 0 {
			gain += x
		} else if x < 0 {
			loss -= x
		}
	}
	return gain, loss
}
