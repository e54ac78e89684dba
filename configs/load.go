package configs

// Load opens the file at path, applies the assignments of --set and decodes into the struct that
// holds the defaults. It returns the edited document, whose sections the struct may hold.
func Load(path string, assignments []string, into any) (*Document, error) {
	doc, err := Open(path)
	if err != nil {
		return nil, err
	}
	if err := doc.Set(assignments...); err != nil {
		return nil, err
	}
	if err := doc.Decode(into); err != nil {
		return nil, err
	}
	return doc, nil
}
