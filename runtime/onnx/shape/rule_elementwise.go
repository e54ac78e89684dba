package shape

func unary(c *call) error {
	c.set(0, c.typ(0))
	return nil
}

func binary(c *call) error {
	t, err := broadcast(c.typ(0), c.typ(1))
	if err != nil {
		return err
	}
	c.set(0, t)
	return nil
}
