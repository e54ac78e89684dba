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
