package opcases

import "slices"

// All returns every case, family by family.
func All() []Case {
	return slices.Concat(
		arithmeticCases(),
		elementwiseCases(),
		activationCases(),
		reduceCases(),
		matrixCases(),
		movementCases(),
		sequenceCases(),
		padCases(),
		indexingCases(),
		zeroCases(),
		contribCases(),
		convCases(),
		poolCases(),
		normCases(),
		recurrentCases(),
		imageCases(),
		visionCases(),
		lossCases(),
		fourierCases(),
		attentionCases(),
		controlCases(),
	)
}
