package shape

// constantOps make values from attributes, shapes or nothing.
var constantOps = []entry{
	{"Bernoulli", "f", 15, randomLike, nil},
	{"Constant", "", 1, constant, nil},
	{"ConstantOfShape", "l", 9, constantOfShape, nil},
	{"EyeLike", "a", 9, eyeLike, nil},
	{"Multinomial", "f", 7, multinomial, nil},
	{"RandomNormal", "", 1, random, nil},
	{"RandomNormalLike", "a", 1, randomLike, nil},
	{"RandomUniform", "", 1, random, nil},
	{"RandomUniformLike", "a", 1, randomLike, nil},
	{"Range", "n 0 0", 11, rangeOf, nil},
	{"Shape", "a", 1, shapeOf, nil},
	{"Size", "a", 1, size, nil},
}

// controlOps hold sub-graphs.
var controlOps = []entry{
	{"If", "b", 1, ifElse, nil},
	{"Loop", "l? b? V*", 1, loop, nil},
	{"Scan", "V? V*", 8, scan, nil},
}

// sequenceOps build and read sequences and optionals.
var sequenceOps = []entry{
	{"ConcatFromSequence", "S", 11, concatFromSequence, nil},
	{"Optional", "V?", 15, optional, nil},
	{"OptionalGetElement", "V", 15, optionalGetElement, nil},
	{"OptionalHasElement", "V?", 15, optionalHasElement, nil},
	{"SequenceAt", "S j", 11, sequenceAt, nil},
	{"SequenceConstruct", "a 0*", 11, sequenceConstruct, nil},
	{"SequenceEmpty", "", 11, sequenceEmpty, nil},
	{"SequenceErase", "S j?", 11, sequenceErase, nil},
	{"SequenceInsert", "S a j?", 11, sequenceInsert, nil},
	{"SequenceLength", "S", 11, sequenceLength, nil},
	{"SequenceMap", "S V*", 17, sequenceMap, nil},
	{"SplitToSequence", "a j?", 11, splitToSequence, nil},
}

// textOps read strings and encoded images.
var textOps = []entry{
	{"ImageDecoder", "i", 20, imageDecoder, nil},
	{"RegexFullMatch", "s", 20, isPredicate, nil},
	{"StringConcat", "s s", 20, elementwise, nil},
	{"StringNormalizer", "s", 10, stringNormalizer, nil},
	{"StringSplit", "s", 20, stringSplit, nil},
	{"TfIdfVectorizer", "sj", 9, tfIdf, nil},
}
