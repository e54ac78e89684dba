// Package cmaes is the evolution strategy with covariance matrix adaptation, one generation at a
// time: a [Strategy] gives its members, its user evaluates them, and it receives their losses.
//
// # Source
//
// Hansen, "The CMA Evolution Strategy: A Tutorial" (2016, arXiv 1604.00772), with its constants:
//
//	x = m + σ·y,  y = Aᵀz,  z ~ N(0, I),  C = AᵀA
//	m  ← m + σ·Σ wᵢ·yᵢ                                             over the better half, best first
//	pσ ← (1−cσ)·pσ + √(cσ(2−cσ)μ)·Σ wᵢ·zᵢ,  σ ← σ·exp(cσ/dσ·(‖pσ‖/E‖z‖ − 1))
//	pc ← (1−cc)·pc + h·√(cc(2−cc)μ)·Σ wᵢ·yᵢ,  C ← (1−c₁−cμ+c₁·δ)·C + c₁·pc·pcᵀ + cμ·Σ wᵢ·yᵢ·yᵢᵀ
//
// where h is 0, and δ = cc(2−cc), while σ grows fast. Two deviations: the covariance is kept as its
// Cholesky factor A and updated in place (Krause, Arbonès & Igel 2016), so that a generation costs
// n² for each member and the path of the step size uses the factor in place of the symmetric root;
// and weights of the worse half are zero. gonum does the updates of the factor.
//
// gonum's CmaEsChol (v0.17.0) does not take the steps: it draws its samples without the step size
// that it adapts, and divides by it once instead of twice where the covariance takes in a sample.
// InitStepSize changes no sample of the first generation, and a six-dimensional sphere takes tens
// of thousands of evaluations where a thousand suffice; TestGonum shows both, and fails when a
// version of gonum has them no more.
//
// # Randomness and state
//
// A member follows from the strategy's key, its generation and its number, so [State] holds no
// samples. The same key and the same losses give the same bits.
package cmaes
