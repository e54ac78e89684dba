package opcases

import "slices"

// All returns every case, family by family.
func All() []Case {
	return slices.Concat(
		arithmeticCases(),
		convCases(),
		poolCases(),
		normCases(),
		recurrentCases(),
	)
}
