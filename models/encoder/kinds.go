package encoder

// Kinds returns the encoders that come with the program, by name.
func Kinds() []Kind {
	return []Kind{FileKind, GRUKind, InformerKind, MLPKind, SetKind, TimeCNNKind, TimeFormerKind, TimesNetKind, TransformerKind}
}
