package autodiff

import "sync"

// rules returns the whole table. Lists are kept per family, in the file that names the family.
var rules = sync.OnceValue(func() ruleTable {
	return indexRules(
		arithmeticRules, elementwiseRules, activationRules, reduceRules, matrixRules, movementRules, padRules, indexingRules, scatterRules,
		contribRules, zeroRules(),
		convRules, poolRules, normRules, recurrentRules, resizeRules,
		spaceRules, dropoutRules, lossRules, gridRules, fourierRules, attentionRules, controlRules,
		determinantRules, roiRules,
	)
})
