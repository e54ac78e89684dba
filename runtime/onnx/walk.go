package onnx

// EachGraph calls f for the main graph and every graph nested in node attributes, outer graphs
// first, then for the graphs inside functions and training information. It stops at the first
// error.
func (m *ModelProto) EachGraph(f func(*Graph) error) error {
	if err := eachGraph(m.GetGraph(), f); err != nil {
		return err
	}
	for _, fn := range m.GetFunctions() {
		if err := eachGraphOf(fn.Node, f); err != nil {
			return err
		}
	}
	for _, t := range m.GetTrainingInfo() {
		if err := eachGraph(t.Initialization, f); err != nil {
			return err
		}
		if err := eachGraph(t.Algorithm, f); err != nil {
			return err
		}
	}
	return nil
}

func eachGraph(g *Graph, f func(*Graph) error) error {
	if g == nil {
		return nil
	}
	if err := f(g); err != nil {
		return err
	}
	return eachGraphOf(g.Node, f)
}

func eachGraphOf(nodes []*Node, f func(*Graph) error) error {
	for _, n := range nodes {
		for _, s := range n.Subgraphs() {
			if err := eachGraph(s, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// EachTensor calls f for every dense tensor the model holds: initializers, the parts of sparse
// initializers, and attributes, in sub-graphs and functions too. It stops at the first error.
func (m *ModelProto) EachTensor(f func(*TensorProto) error) error {
	err := m.EachGraph(func(g *Graph) error {
		for _, t := range g.Initializer {
			if err := f(t); err != nil {
				return err
			}
		}
		for _, s := range g.SparseInitializer {
			if err := eachSparse(s, f); err != nil {
				return err
			}
		}
		return eachNodeTensor(g.Node, f)
	})
	if err != nil {
		return err
	}
	for _, fn := range m.GetFunctions() {
		if err := eachNodeTensor(fn.Node, f); err != nil {
			return err
		}
	}
	return nil
}

func eachSparse(s *SparseTensorProto, f func(*TensorProto) error) error {
	if s.GetValues() != nil {
		if err := f(s.Values); err != nil {
			return err
		}
	}
	if s.GetIndices() != nil {
		return f(s.Indices)
	}
	return nil
}

func eachNodeTensor(nodes []*Node, f func(*TensorProto) error) error {
	for _, n := range nodes {
		for _, a := range n.Attribute {
			if a.T != nil {
				if err := f(a.T); err != nil {
					return err
				}
			}
			for _, t := range a.Tensors {
				if err := f(t); err != nil {
					return err
				}
			}
			if a.SparseTensor != nil {
				if err := eachSparse(a.SparseTensor, f); err != nil {
					return err
				}
			}
			for _, s := range a.SparseTensors {
				if err := eachSparse(s, f); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
