package portable

import "slices"

// operators is everything the engine executes. Each family's lines stand at the top of the file
// that holds its kernels.
var operators = slices.Concat(
	unaryOperators,
	activationOperators,
	binaryOperators,
	castOperators,
	shapeOperators,
	constantOperators,
	moveOperators,
	gatherOperators,
	matmulOperators,
	controlOperators,
	reduceOperators,
	softmaxOperators,
	variadicOperators,
	cumulativeOperators,
	scatterOperators,
	convOperators,
	poolOperators,
	normOperators,
	padOperators,
	randomOperators,
	lossOperators,
	recurrentOperators,
	resizeOperators,
	sampleOperators,
	quantizeOperators,
	attentionOperators,
	linearAttentionOperators,
	fourierOperators,
	einsumOperators,
	detectionOperators,
	sequenceOperators,
)
