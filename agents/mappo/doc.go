// Package mappo is multi-agent PPO (Yu et al. 2022, "The Surprising Effectiveness of PPO in
// Cooperative Multi-Agent Games", arXiv 2103.01955), with a value that reads what no policy does,
// and independent PPO (de Witt et al. 2020, arXiv 2011.09533), without it.
package mappo
