package main

const (
	exponentBits = 0x7f800000
	// squareBits are the two top exponent bits: both are clear exactly when the
	// magnitude is below 2^-63, where a square is below the smallest normal.
	squareBits = 0x60000000
	signBit    = 0x80000000
	absBits    = 0x7fffffff
	oneBits    = 0x3f800000
)

// programs lists every element-wise kernel. The formulas and the treatment of
// tiny values are documented at the Go twins in package kernel.
func programs() []*program {
	list := []*program{
		adam(), amsgrad(), lamb(), sgd(), momentum(false), momentum(true),
		rmsprop(false, false), rmsprop(false, true), rmsprop(true, false), rmsprop(true, true),
		lion(), polyak(), axpy(),
	}
	for _, p := range list {
		p.finish()
	}
	return list
}

// gradient is GradScale*grads + L2*params.
func (p *program) gradient(params value) value {
	g := p.mul(p.load("grads"), p.c("GradScale"))
	return p.add(g, p.mul(params, p.c("L2")))
}

// ema is keep*old + take*new, with denormal old and masked-out new as zero.
func (p *program) ema(old value, keep string, knew, newA, newB value) value {
	k := p.test(old, p.bits(exponentBits))
	return p.add(p.mulz(k, old, p.c(keep)), p.mulz(knew, newA, newB))
}

// moments updates m and v and returns them.
func (p *program) moments(g value) (m, v value) {
	kg := p.test(g, p.bits(squareBits))
	m = p.ema(p.load("m"), "Beta1", kg, g, p.c("Beta1C"))
	p.store("m", m)
	v = p.secondMoment(kg, g, "Beta2", "Beta2C")
	return m, v
}

func (p *program) secondMoment(kg, g value, keep, take string) value {
	old := p.load("v")
	k := p.test(old, p.bits(exponentBits))
	sq := p.mul(p.mulz(kg, g, g), p.c(take))
	v := p.add(p.mulz(k, old, p.c(keep)), sq)
	p.store("v", v)
	return v
}

var adamCoefs = []string{"GradScale", "L2", "Beta1", "Beta1C", "Beta2", "Beta2C", "Eps", "Step", "Keep"}

func adam() *program {
	p := newProgram("adam", "AdamCoef", []string{"params", "grads", "m", "v"}, adamCoefs)
	w := p.load("params")
	m, v := p.moments(p.gradient(w))
	r := p.div(p.c("Step"), p.add(p.sqrt(v), p.c("Eps")))
	p.store("params", p.sub(p.mul(w, p.c("Keep")), p.mul(m, r)))
	return p
}

func amsgrad() *program {
	p := newProgram("amsgrad", "AdamCoef", []string{"params", "grads", "m", "v", "vmax"}, adamCoefs)
	w := p.load("params")
	m, v := p.moments(p.gradient(w))
	v = p.max(p.load("vmax"), v)
	p.store("vmax", v)
	r := p.div(p.c("Step"), p.add(p.sqrt(v), p.c("Eps")))
	p.store("params", p.sub(p.mul(w, p.c("Keep")), p.mul(m, r)))
	return p
}

func lamb() *program {
	p := newProgram("lamb", "LAMBCoef", []string{"params", "grads", "m", "v", "update"},
		[]string{"GradScale", "Beta1", "Beta1C", "Beta2", "Beta2C", "Eps", "Step", "Decay"})
	m, v := p.moments(p.mul(p.load("grads"), p.c("GradScale")))
	r := p.div(p.c("Step"), p.add(p.sqrt(v), p.c("Eps")))
	p.store("update", p.add(p.mul(m, r), p.mul(p.load("params"), p.c("Decay"))))
	return p
}

func sgd() *program {
	p := newProgram("sgd", "SGDCoef", []string{"params", "grads"}, []string{"GradScale", "L2", "LR"})
	w := p.load("params")
	p.store("params", p.sub(w, p.mul(p.gradient(w), p.c("LR"))))
	return p
}

func momentum(nesterov bool) *program {
	name := "momentum"
	if nesterov {
		name = "nesterov"
	}
	p := newProgram(name, "MomentumCoef", []string{"params", "grads", "buf"},
		[]string{"GradScale", "L2", "Momentum", "Take", "LR"})
	w := p.load("params")
	g := p.gradient(w)
	old := p.load("buf")
	k := p.test(old, p.bits(exponentBits))
	buf := p.add(p.mulz(k, old, p.c("Momentum")), p.mul(g, p.c("Take")))
	p.store("buf", buf)
	step := buf
	if nesterov {
		step = p.add(g, p.mul(buf, p.c("Momentum")))
	}
	p.store("params", p.sub(w, p.mul(step, p.c("LR"))))
	return p
}

func rmsprop(centred, withMomentum bool) *program {
	name, ptrs := "rmsprop", []string{"params", "grads", "v"}
	if centred {
		name, ptrs = name+"Centred", append(ptrs, "mean")
	}
	if withMomentum {
		name, ptrs = name+"Momentum", append(ptrs, "buf")
	}
	p := newProgram(name, "RMSPropCoef", ptrs,
		[]string{"GradScale", "L2", "Alpha", "AlphaC", "EpsInside", "Eps", "Momentum", "LR"})
	w := p.load("params")
	g := p.gradient(w)
	kg := p.test(g, p.bits(squareBits))
	v := p.secondMoment(kg, g, "Alpha", "AlphaC")
	if centred {
		mean := p.ema(p.load("mean"), "Alpha", kg, g, p.c("AlphaC"))
		p.store("mean", mean)
		km := p.test(mean, p.bits(squareBits))
		v = p.max(p.bits(0), p.sub(v, p.mulz(km, mean, mean)))
	}
	den := p.add(p.sqrt(p.add(v, p.c("EpsInside"))), p.c("Eps"))
	u := p.div(g, den)
	if withMomentum {
		old := p.load("buf")
		k := p.test(old, p.bits(exponentBits))
		u = p.add(p.mulz(k, old, p.c("Momentum")), u)
		p.store("buf", u)
	}
	p.store("params", p.sub(w, p.mul(u, p.c("LR"))))
	return p
}

func lion() *program {
	p := newProgram("lion", "LionCoef", []string{"params", "grads", "m"},
		[]string{"GradScale", "Beta1", "Beta1C", "Beta2", "Beta2C", "LR", "Keep"})
	g := p.mul(p.load("grads"), p.c("GradScale"))
	old := p.load("m")
	k := p.test(old, p.bits(exponentBits))
	dir := p.add(p.mulz(k, old, p.c("Beta1")), p.mul(g, p.c("Beta1C")))
	p.store("m", p.add(p.mulz(k, old, p.c("Beta2")), p.mul(g, p.c("Beta2C"))))
	sign := p.or(p.and(dir, p.bits(signBit)), p.bits(oneBits))
	step := p.mulz(p.test(dir, p.bits(absBits)), sign, p.c("LR"))
	// Zero times the direction is zero when it is finite and NaN when not.
	step = p.add(step, p.mul(dir, p.bits(0)))
	p.store("params", p.sub(p.mul(p.load("params"), p.c("Keep")), step))
	return p
}

func polyak() *program {
	p := newProgram("polyak", "ScalarCoef", []string{"dst", "src"}, []string{"A"})
	d := p.load("dst")
	p.store("dst", p.add(d, p.mul(p.sub(p.load("src"), d), p.c("A"))))
	return p
}

func axpy() *program {
	p := newProgram("axpy", "ScalarCoef", []string{"dst", "src"}, []string{"A"})
	p.store("dst", p.add(p.load("dst"), p.mul(p.load("src"), p.c("A"))))
	return p
}
