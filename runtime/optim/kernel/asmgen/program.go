package main

import "fmt"

// op is one instruction of a program. Every op but store defines one value.
type op int

const (
	opLoad  op = iota // one vector from pointer arg
	opStore           // value a to pointer arg
	opConst           // a broadcast constant; see value.source
	opAdd             // a + b
	opSub             // a - b
	opMul             // a * b
	opDiv             // a / b
	opSqrt            // the correctly rounded root of a
	opMax             // a > b ? a : b, so b when either is NaN
	opAnd             // bitwise
	opOr              // bitwise
	opTest            // a mask: (bits of a & bits of b) != 0 per lane
	opMulZ            // mask ? a * b : +0
)

// value is a handle to an instruction's result; program.code holds it.
type value int

type instr struct {
	op   op
	a, b value // operands, -1 when absent
	mask value // opMulZ only, else -1
	arg  int   // pointer index of loads and stores
	imm  uint32
	coef int // opConst: index into program.coefs, or -1 when imm holds the bits
}

// program describes one element-wise kernel: the same straight-line code runs
// on every vector. A pointer is loaded at most once and stored at most once.
type program struct {
	name     string // lower-camel Go name: the assembly function is name+ISA
	coefType string // Go struct of float32 fields, in the order of coefs
	ptrs     []string
	coefs    []string
	code     []instr
	stores   []instr // see finish
}

func newProgram(name, coefType string, ptrs, coefs []string) *program {
	return &program{name: name, coefType: coefType, ptrs: ptrs, coefs: coefs}
}

func (p *program) emit(i instr) value {
	p.code = append(p.code, i)
	return value(len(p.code) - 1)
}

func index(list []string, name string) int {
	for i, s := range list {
		if s == name {
			return i
		}
	}
	panic("asmgen: no such name " + name)
}

func (p *program) load(ptr string) value {
	return p.emit(instr{op: opLoad, a: -1, b: -1, mask: -1, arg: index(p.ptrs, ptr)})
}

func (p *program) store(ptr string, v value) {
	p.stores = append(p.stores, instr{op: opStore, a: v, b: -1, mask: -1, arg: index(p.ptrs, ptr)})
}

// finish puts the stores behind everything else. Arenas start on pages, so the
// same element of two of them has the same address modulo 4096, and x86 holds
// a load back behind an earlier store that looks like its own.
func (p *program) finish() {
	p.code = append(p.code, p.stores...)
}

func (p *program) constant(i instr) value {
	for n, c := range p.code {
		if c.op == opConst && c.coef == i.coef && c.imm == i.imm {
			return value(n)
		}
	}
	i.op, i.a, i.b, i.mask = opConst, -1, -1, -1
	return p.emit(i)
}

// c is the coefficient called name.
func (p *program) c(name string) value { return p.constant(instr{coef: index(p.coefs, name)}) }

// bits is a constant given as an IEEE-754 bit pattern.
func (p *program) bits(b uint32) value { return p.constant(instr{coef: -1, imm: b}) }

func (p *program) bin(o op, a, b value) value { return p.emit(instr{op: o, a: a, b: b, mask: -1}) }

func (p *program) add(a, b value) value     { return p.bin(opAdd, a, b) }
func (p *program) sub(a, b value) value     { return p.bin(opSub, a, b) }
func (p *program) mul(a, b value) value     { return p.bin(opMul, a, b) }
func (p *program) div(a, b value) value     { return p.bin(opDiv, a, b) }
func (p *program) max(a, b value) value     { return p.bin(opMax, a, b) }
func (p *program) and(a, b value) value     { return p.bin(opAnd, a, b) }
func (p *program) or(a, b value) value      { return p.bin(opOr, a, b) }
func (p *program) sqrt(a value) value       { return p.bin(opSqrt, a, -1) }
func (p *program) test(a, bits value) value { return p.bin(opTest, a, bits) }
func (p *program) mulz(k, a, b value) value { return p.emit(instr{op: opMulZ, a: a, b: b, mask: k}) }
func (p *program) isConst(v value) bool     { return p.code[v].op == opConst }
func (p *program) operands(i instr) []value { return []value{i.a, i.b, i.mask} }
func (p *program) isMask(v value) bool      { return p.code[v].op == opTest }
func (p *program) constants() (list []value) {
	for n, c := range p.code {
		if c.op == opConst {
			list = append(list, value(n))
		}
	}
	return list
}

// allocation maps every non-constant value to a register number.
type allocation struct {
	reg      map[value]int
	used     int // vector registers needed by values
	maskUsed int // mask registers needed when masks live apart
}

// allocate assigns registers by linear scan: an operand's register is free
// again for the result of the instruction that reads it last. With
// separateMasks, masks get numbers of their own, starting at 1 (K0 is special
// on AVX-512).
func (p *program) allocate(separateMasks bool) allocation {
	last := map[value]int{}
	for n, i := range p.code {
		for _, v := range p.operands(i) {
			if v >= 0 && !p.isConst(v) {
				last[v] = n
			}
		}
	}
	al := allocation{reg: map[value]int{}}
	free := map[bool][]int{}
	next := map[bool]int{true: 1}
	for n, i := range p.code {
		freed := map[value]bool{}
		for _, v := range p.operands(i) {
			if v >= 0 && !p.isConst(v) && last[v] == n && !freed[v] {
				freed[v] = true
				class := separateMasks && p.isMask(v)
				free[class] = append(free[class], al.reg[v])
			}
		}
		if i.op == opStore || i.op == opConst {
			continue
		}
		if _, ok := last[value(n)]; !ok {
			panic(fmt.Sprintf("asmgen: %s: value %d is never used", p.name, n))
		}
		class := separateMasks && i.op == opTest
		if k := len(free[class]); k > 0 {
			al.reg[value(n)] = free[class][k-1]
			free[class] = free[class][:k-1]
			continue
		}
		al.reg[value(n)] = next[class]
		next[class]++
	}
	al.used, al.maskUsed = next[false], next[true]-1
	return al
}
