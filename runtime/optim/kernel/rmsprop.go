package kernel

// RMSProp performs one step in place on params and v:
//
//	g = GradScale*grads + L2*params
//	v = Alpha*v + AlphaC*g*g
//	params -= LR * (g / (sqrt(v + EpsInside) + Eps))
//
// PyTorch and Hinton's lecture add epsilon to the root (Eps), TensorFlow under
// it (EpsInside); early steps differ greatly between the two.
func RMSProp(params, grads, v []float32, c *RMSPropCoef) {
	n := len(params)
	same("RMSProp", n, len(grads), len(v))
	k := rmspropVector(params, grads, v, c)
	rmspropTwin(params[k:], grads[k:n], v[k:n], c)
}

func rmspropTwin(params, grads, v []float32, c *RMSPropCoef) {
	for i, w := range params {
		g := float32(c.GradScale*grads[i]) + float32(c.L2*w)
		v[i] = meanSquare(g, v[i], c)
		u := g / (sqrt32(v[i]+c.EpsInside) + c.Eps)
		params[i] = w - float32(u*c.LR)
	}
}

func meanSquare(g, v float32, c *RMSPropCoef) float32 {
	g = squarable(g)
	return float32(c.Alpha*normal(v)) + float32(float32(g*g)*c.AlphaC)
}

// RMSPropMomentum is RMSProp with
//
//	buf = Momentum*buf + g / (sqrt(v + EpsInside) + Eps)
//	params -= LR * buf
func RMSPropMomentum(params, grads, v, buf []float32, c *RMSPropCoef) {
	n := len(params)
	same("RMSPropMomentum", n, len(grads), len(v), len(buf))
	k := rmspropMomentumVector(params, grads, v, buf, c)
	rmspropMomentumTwin(params[k:], grads[k:n], v[k:n], buf[k:n], c)
}

func rmspropMomentumTwin(params, grads, v, buf []float32, c *RMSPropCoef) {
	for i, w := range params {
		g := float32(c.GradScale*grads[i]) + float32(c.L2*w)
		v[i] = meanSquare(g, v[i], c)
		u := g / (sqrt32(v[i]+c.EpsInside) + c.Eps)
		buf[i] = float32(c.Momentum*normal(buf[i])) + u
		params[i] = w - float32(buf[i]*c.LR)
	}
}

// RMSPropCentred is RMSProp divided by an estimate of the variance
// (Graves 2013): mean = Alpha*mean + AlphaC*g is updated too and v - mean^2
// takes the place of v. Where rounding makes the difference negative it counts
// as zero; PyTorch returns NaN there.
func RMSPropCentred(params, grads, v, mean []float32, c *RMSPropCoef) {
	n := len(params)
	same("RMSPropCentred", n, len(grads), len(v), len(mean))
	k := rmspropCentredVector(params, grads, v, mean, c)
	rmspropCentredTwin(params[k:], grads[k:n], v[k:n], mean[k:n], c)
}

func rmspropCentredTwin(params, grads, v, mean []float32, c *RMSPropCoef) {
	for i, w := range params {
		g := float32(c.GradScale*grads[i]) + float32(c.L2*w)
		v[i] = meanSquare(g, v[i], c)
		mean[i] = float32(c.Alpha*normal(mean[i])) + float32(squarable(g)*c.AlphaC)
		u := g / (sqrt32(variance(v[i], mean[i])+c.EpsInside) + c.Eps)
		params[i] = w - float32(u*c.LR)
	}
}

// variance is v - mean*mean, at least +0, or NaN.
func variance(v, mean float32) float32 {
	mean = squarable(mean)
	d := v - float32(mean*mean)
	if 0 > d {
		return 0
	}
	return d
}

// RMSPropCentredMomentum is RMSPropCentred with RMSPropMomentum's buffer.
func RMSPropCentredMomentum(params, grads, v, mean, buf []float32, c *RMSPropCoef) {
	n := len(params)
	same("RMSPropCentredMomentum", n, len(grads), len(v), len(mean), len(buf))
	k := rmspropCentredMomentumVector(params, grads, v, mean, buf, c)
	rmspropCentredMomentumTwin(params[k:], grads[k:n], v[k:n], mean[k:n], buf[k:n], c)
}

func rmspropCentredMomentumTwin(params, grads, v, mean, buf []float32, c *RMSPropCoef) {
	for i, w := range params {
		g := float32(c.GradScale*grads[i]) + float32(c.L2*w)
		v[i] = meanSquare(g, v[i], c)
		mean[i] = float32(c.Alpha*normal(mean[i])) + float32(squarable(g)*c.AlphaC)
		u := g / (sqrt32(variance(v[i], mean[i])+c.EpsInside) + c.Eps)
		buf[i] = float32(c.Momentum*normal(buf[i])) + u
		params[i] = w - float32(buf[i]*c.LR)
	}
}
