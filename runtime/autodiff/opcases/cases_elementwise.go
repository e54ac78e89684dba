package opcases

func elementwiseCases() []Case {
	var cases []Case
	add := func(name string, lo, hi float64, kinks ...float64) {
		cases = append(cases,
			op(name, "scalar", away(lo, hi, kinks)),
			op(name, "vector", away(lo, hi, kinks, 7)),
			op(name, "cube", away(lo, hi, kinks, 2, 3, 4)),
		)
	}
	add("Abs", -2, 2, 0)
	add("Neg", -2, 2)
	add("Exp", -2, 2)
	add("Log", 0.3, 3)
	add("Sqrt", 0.3, 3)
	add("Reciprocal", -2, 2, 0, 0.1, -0.1, 0.2, -0.2)
	add("Erf", -2, 2)
	add("Sin", -3, 3)
	add("Cos", -3, 3)
	add("Tan", -1.2, 1.2)
	add("Asin", -0.8, 0.8)
	add("Acos", -0.8, 0.8)
	add("Atan", -3, 3)
	add("Sinh", -2, 2)
	add("Cosh", -2, 2)
	add("Asinh", -3, 3)
	add("Acosh", 1.3, 3)
	add("Atanh", -0.8, 0.8)
	return append(cases,
		op("Abs", "at zero", Values([]int{3}, -2, 0, 2)).want([]float64{-1, 0, 1}),
		op("Abs", "many", away(-2, 2, []float64{0}, 40, 30)),
		op("Asin", "near one", Values([]int{2}, 0.96875, -0.96875)).want([]float64{4.0316210454317565, 4.0316210454317565}),
	)
}
