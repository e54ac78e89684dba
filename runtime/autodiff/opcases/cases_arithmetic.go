package opcases

func arithmeticCases() []Case {
	return []Case{
		op("Add", "same", Any(2, 3), Any(2, 3)),
		op("Add", "row", Any(2, 3), Any(3)),
		op("Add", "both", Any(2, 1, 4), Any(3, 1)),
		op("Add", "scalar", Any(), Any(2, 2)),
		op("Sub", "same", Any(2, 3), Any(2, 3)),
		op("Sub", "row", Any(2, 3), Any(1, 3)),
		op("Sub", "both", Any(2, 1, 4), Any(3, 1)),
		op("Mul", "same", Any(2, 3), Any(2, 3)),
		op("Mul", "row", Any(2, 3), Any(3)),
		op("Mul", "both", Any(2, 1, 4), Any(3, 1)),
		op("Div", "same", Any(2, 3), NonZero(2, 3)),
		op("Div", "row", Any(2, 3), NonZero(3)),
		op("Div", "both", Any(2, 1, 4), NonZero(3, 1)),
		op("Neg", "vector", Any(5)),
		op("Neg", "scalar", Any()),
		op("Neg", "cube", Any(2, 3, 2)),
		op("Identity", "vector", Any(5)),
		op("Identity", "scalar", Any()),
		op("Identity", "cube", Any(2, 3, 2)),
	}
}
