package opcases

import "github.com/onnxrl/onnxrl/runtime/onnx"

func matrixCases() []Case {
	ta, tb := onnx.AttrInt("transA", 1), onnx.AttrInt("transB", 1)
	eq := func(variant, equation string, args ...Arg) Case {
		return op("Einsum", variant, args...).attr(onnx.AttrStr("equation", equation))
	}
	return []Case{
		op("Gemm", "plain", Any(2, 3), Any(3, 4)),
		op("Gemm", "bias row", Any(2, 3), Any(3, 4), Any(4)),
		op("Gemm", "bias column", Any(2, 3), Any(3, 4), Any(2, 1)),
		op("Gemm", "bias scalar", Any(2, 3), Any(3, 4), Any()),
		op("Gemm", "bias matrix", Any(2, 3), Any(3, 4), Any(2, 4)),
		op("Gemm", "transA", Any(3, 2), Any(3, 4), Any(4)).attr(ta),
		op("Gemm", "transB", Any(2, 3), Any(4, 3), Any(4)).attr(tb),
		op("Gemm", "both", Any(3, 2), Any(4, 3), Any(4)).attr(ta, tb),
		op("Gemm", "factors", Any(2, 3), Any(3, 4), Any(4)).attr(onnx.AttrFloat("alpha", 0.5), onnx.AttrFloat("beta", -1.5)),
		op("Gemm", "factors both", Any(3, 2), Any(4, 3), Any(4)).attr(ta, tb, onnx.AttrFloat("alpha", 0.5), onnx.AttrFloat("beta", 2)),
		op("Gemm", "constant weight", Any(2, 3), Any(3, 4).Const(), Any(4)),
		op("Gemm", "one row", Any(1, 3), Any(3, 4), Any(4)),

		op("MatMul", "matrices", Any(2, 3), Any(3, 4)),
		op("MatMul", "vectors", Any(3), Any(3)),
		op("MatMul", "vector matrix", Any(3), Any(3, 4)),
		op("MatMul", "matrix vector", Any(2, 3), Any(3)),
		op("MatMul", "batch by weight", Any(2, 5, 3), Any(3, 4)),
		op("MatMul", "batch by vector", Any(2, 5, 3), Any(3)),
		op("MatMul", "vector by batch", Any(3), Any(2, 3, 4)),
		op("MatMul", "batches", Any(2, 5, 3), Any(2, 3, 4)),
		op("MatMul", "broadcast batches", Any(2, 1, 5, 3), Any(4, 3, 2)),
		op("MatMul", "weight by batch", Any(5, 3), Any(2, 3, 4)),
		op("MatMul", "one batch", Any(2, 5, 3), Any(1, 3, 4)),

		eq("matrix product", "ij,jk->ik", Any(2, 3), Any(3, 4)),
		eq("implicit", "ij,jk", Any(2, 3), Any(3, 4)),
		eq("batched", "bij,bjk->bik", Any(2, 2, 3), Any(2, 3, 2)),
		eq("attention", "bqhd,bkhd->bhqk", Any(2, 3, 2, 2), Any(2, 4, 2, 2)),
		eq("transpose", "ij->ji", Any(2, 3)),
		eq("sum", "ij->i", Any(2, 3)),
		eq("total", "ij->", Any(2, 3)),
		eq("outer", "i,j->ij", Any(2), Any(3)),
		eq("inner", "i,i->", Any(3), Any(3)),
		eq("own label", "ij,k->ik", Any(2, 3), Any(4)),
		eq("three", "ij,jk,kl->il", Any(2, 3), Any(3, 2), Any(2, 4)),
		eq("bilinear", "bi,oij,bj->bo", Any(2, 3), Any(4, 3, 2), Any(2, 2)),
		eq("trace", "ii->", Any(3, 3)),
		eq("diagonal", "ii->i", Any(3, 3)),
		eq("batch diagonal", "bii->bi", Any(2, 3, 3)),
		eq("ellipsis", "...ij,...jk->...ik", Any(2, 2, 3), Any(2, 3, 2)),
		eq("ellipsis on one", "...ij,jk->...ik", Any(2, 2, 3), Any(3, 2)),
		eq("spaces", "b i , i -> b", Any(2, 3), Any(3)),
	}
}
