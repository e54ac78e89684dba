package kernel

// Adam performs one fused step in place on params, m and v:
//
//	g = GradScale*grads + L2*params
//	m = Beta1*m + Beta1C*g
//	v = Beta2*v + Beta2C*g*g
//	params = Keep*params - m * (Step / (sqrt(v) + Eps))
//
// which is Algorithm 1 of Kingma & Ba (2015) in the form of the end of its
// section 2, bias correction folded into Step and Eps. Keep = 1 and L2 > 0 is
// Adam with coupled decay; Keep < 1 and L2 = 0 is AdamW.
func Adam(params, grads, m, v []float32, c *AdamCoef) {
	n := len(params)
	same("Adam", n, len(grads), len(m), len(v))
	k := adamVector(params, grads, m, v, c)
	adamTwin(params[k:], grads[k:n], m[k:n], v[k:n], c)
}

func adamTwin(params, grads, m, v []float32, c *AdamCoef) {
	grads, m, v = grads[:len(params)], m[:len(params)], v[:len(params)]
	for i, w := range params {
		m1, v1 := moments(float32(c.GradScale*grads[i])+float32(c.L2*w), m[i], v[i], c.Beta1, c.Beta1C, c.Beta2, c.Beta2C)
		m[i], v[i] = m1, v1
		r := c.Step / (sqrt32(v1) + c.Eps)
		params[i] = float32(w*c.Keep) - float32(m1*r)
	}
}

// moments returns the updated first and second moment for gradient g.
func moments(g, m, v, beta1, beta1c, beta2, beta2c float32) (m1, v1 float32) {
	g = squarable(g)
	m1 = float32(beta1*normal(m)) + float32(beta1c*g)
	v1 = float32(beta2*normal(v)) + float32(float32(g*g)*beta2c)
	return m1, v1
}

// AMSGrad is Adam with the denominator taken from vmax, the running maximum of
// v, which is updated too (Reddi et al. 2018). As in PyTorch the maximum is of
// the uncorrected moment.
func AMSGrad(params, grads, m, v, vmax []float32, c *AdamCoef) {
	n := len(params)
	same("AMSGrad", n, len(grads), len(m), len(v), len(vmax))
	k := amsgradVector(params, grads, m, v, vmax, c)
	amsgradTwin(params[k:], grads[k:n], m[k:n], v[k:n], vmax[k:n], c)
}

func amsgradTwin(params, grads, m, v, vmax []float32, c *AdamCoef) {
	for i, w := range params {
		m1, v1 := moments(float32(c.GradScale*grads[i])+float32(c.L2*w), m[i], v[i], c.Beta1, c.Beta1C, c.Beta2, c.Beta2C)
		m[i], v[i] = m1, v1
		if !(vmax[i] > v1) {
			vmax[i] = v1
		}
		r := c.Step / (sqrt32(vmax[i]) + c.Eps)
		params[i] = float32(w*c.Keep) - float32(m1*r)
	}
}

// LAMB updates m and v as Adam does and writes the direction of the step,
//
//	update = m * (Step / (sqrt(v) + Eps)) + Decay*params
//
// leaving params alone: the caller scales the direction by the layer's trust
// ratio and applies it with Axpy (You et al. 2020, Algorithm 2).
func LAMB(params, grads, m, v, update []float32, c *LAMBCoef) {
	n := len(params)
	same("LAMB", n, len(grads), len(m), len(v), len(update))
	k := lambVector(params, grads, m, v, update, c)
	lambTwin(params[k:], grads[k:n], m[k:n], v[k:n], update[k:n], c)
}

func lambTwin(params, grads, m, v, update []float32, c *LAMBCoef) {
	for i, w := range params {
		m1, v1 := moments(float32(c.GradScale*grads[i]), m[i], v[i], c.Beta1, c.Beta1C, c.Beta2, c.Beta2C)
		m[i], v[i] = m1, v1
		r := c.Step / (sqrt32(v1) + c.Eps)
		update[i] = float32(m1*r) + float32(c.Decay*w)
	}
}
