package kernel

// The coefficients of one call. The assembly reads the fields by position:
// they are all float32, in the order of asmgen's programs.

// AdamCoef parameterises Adam and AMSGrad.
type AdamCoef struct {
	GradScale float32 // multiplies the gradient first; 1 for none
	L2        float32 // coupled decay: adds L2*params to the gradient
	Beta1     float32
	Beta1C    float32 // 1 - Beta1
	Beta2     float32
	Beta2C    float32 // 1 - Beta2
	Eps       float32 // eps * sqrt(1 - Beta2^t)
	Step      float32 // lr * sqrt(1 - Beta2^t) / (1 - Beta1^t)
	Keep      float32 // decoupled decay: 1 - lr*decay
}

// LAMBCoef parameterises LAMB.
type LAMBCoef struct {
	GradScale float32 // multiplies the gradient first; 1 for none
	Beta1     float32
	Beta1C    float32 // 1 - Beta1
	Beta2     float32
	Beta2C    float32 // 1 - Beta2
	Eps       float32 // eps * sqrt(1 - Beta2^t)
	Step      float32 // sqrt(1 - Beta2^t) / (1 - Beta1^t)
	Decay     float32 // adds Decay*params to the update
}

// SGDCoef parameterises SGD.
type SGDCoef struct {
	GradScale float32 // multiplies the gradient first; 1 for none
	L2        float32 // adds L2*params to the gradient
	LR        float32
}

// MomentumCoef parameterises Momentum and Nesterov.
type MomentumCoef struct {
	GradScale float32 // multiplies the gradient first; 1 for none
	L2        float32 // adds L2*params to the gradient
	Momentum  float32
	Take      float32 // 1 - dampening
	LR        float32
}

// RMSPropCoef parameterises the four RMSProp kernels.
type RMSPropCoef struct {
	GradScale float32 // multiplies the gradient first; 1 for none
	L2        float32 // adds L2*params to the gradient
	Alpha     float32
	AlphaC    float32 // 1 - Alpha
	EpsInside float32 // added under the root (TensorFlow), else 0
	Eps       float32 // added to the root (PyTorch), else 0
	Momentum  float32 // read by the variants with momentum only
	LR        float32
}

// LionCoef parameterises Lion.
type LionCoef struct {
	GradScale float32 // multiplies the gradient first; 1 for none
	Beta1     float32
	Beta1C    float32 // 1 - Beta1
	Beta2     float32
	Beta2C    float32 // 1 - Beta2
	LR        float32
	Keep      float32 // decoupled decay: 1 - lr*decay
}

// ScalarCoef is the factor of Polyak and Axpy.
type ScalarCoef struct{ A float32 }
