package shape

// rules is the whole list of operators whose types are known.
var rules = map[opKey]rule{
	{"", "Identity"}: unary, {"", "Relu"}: unary, {"", "Tanh"}: unary, {"", "Neg"}: unary, {"", "Exp"}: unary, {"", "Log"}: unary,
	{"", "Add"}: binary, {"", "Sub"}: binary, {"", "Mul"}: binary, {"", "Div"}: binary,
}
