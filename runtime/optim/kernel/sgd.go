package kernel

// SGD performs params -= LR * (GradScale*grads + L2*params) in place.
func SGD(params, grads []float32, c *SGDCoef) {
	n := len(params)
	same("SGD", n, len(grads))
	k := sgdVector(params, grads, c)
	sgdTwin(params[k:], grads[k:n], c)
}

func sgdTwin(params, grads []float32, c *SGDCoef) {
	for i, w := range params {
		g := float32(c.GradScale*grads[i]) + float32(c.L2*w)
		params[i] = w - float32(g*c.LR)
	}
}

// Momentum performs one heavy-ball step in place on params and buf:
//
//	g = GradScale*grads + L2*params
//	buf = Momentum*buf + Take*g
//	params -= LR * buf
//
// PyTorch starts with buf = g whatever the dampening: pass Take = 1 and a zero
// buf on the first step.
func Momentum(params, grads, buf []float32, c *MomentumCoef) {
	n := len(params)
	same("Momentum", n, len(grads), len(buf))
	k := momentumVector(params, grads, buf, c)
	momentumTwin(params[k:], grads[k:n], buf[k:n], c)
}

func momentumTwin(params, grads, buf []float32, c *MomentumCoef) {
	for i, w := range params {
		g := float32(c.GradScale*grads[i]) + float32(c.L2*w)
		buf[i] = float32(c.Momentum*normal(buf[i])) + float32(g*c.Take)
		params[i] = w - float32(buf[i]*c.LR)
	}
}

// Nesterov is Momentum with params -= LR * (g + Momentum*buf), the form of
// Sutskever et al. (2013) that PyTorch uses.
func Nesterov(params, grads, buf []float32, c *MomentumCoef) {
	n := len(params)
	same("Nesterov", n, len(grads), len(buf))
	k := nesterovVector(params, grads, buf, c)
	nesterovTwin(params[k:], grads[k:n], buf[k:n], c)
}

func nesterovTwin(params, grads, buf []float32, c *MomentumCoef) {
	for i, w := range params {
		g := float32(c.GradScale*grads[i]) + float32(c.L2*w)
		buf[i] = float32(c.Momentum*normal(buf[i])) + float32(g*c.Take)
		step := g + float32(buf[i]*c.Momentum)
		params[i] = w - float32(step*c.LR)
	}
}

// Lion performs one step in place on params and m (Chen et al. 2023):
//
//	g = GradScale*grads
//	params = Keep*params - LR * sign(Beta1*m + Beta1C*g)
//	m = Beta2*m + Beta2C*g
//
// sign(0) is 0. A direction that is not finite makes the parameter NaN, so
// that a broken gradient does not pass for a unit step.
func Lion(params, grads, m []float32, c *LionCoef) {
	n := len(params)
	same("Lion", n, len(grads), len(m))
	k := lionVector(params, grads, m, c)
	lionTwin(params[k:], grads[k:n], m[k:n], c)
}

func lionTwin(params, grads, m []float32, c *LionCoef) {
	for i, w := range params {
		g := float32(c.GradScale * grads[i])
		old := normal(m[i])
		dir := float32(c.Beta1*old) + float32(g*c.Beta1C)
		m[i] = float32(c.Beta2*old) + float32(g*c.Beta2C)
		var step float32
		switch {
		case dir > 0:
			step = c.LR
		case dir < 0:
			step = -c.LR
		}
		step += float32(dir * 0)
		params[i] = float32(w*c.Keep) - step
	}
}
