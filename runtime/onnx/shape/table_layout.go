package shape

// shapeOps rearrange elements without computing.
var shapeOps = []entry{
	{"CenterCropPad", "a j", 18, centerCropPad, nil},
	{"Compress", "a b", 9, compress, nil},
	{"Concat", "a 0*", 1, concat, nil},
	{"DepthToSpace", "a", 1, depthToSpace, nil},
	{"Expand", "a l", 8, expand, foldExpand},
	{"Flatten", "a", 1, flatten, foldSame},
	{"Pad", "a l? 0? j?", 1, pad, nil},
	{"Reshape", "a l?", 1, reshape, foldSame},
	{"ReverseSequence", "a l", 10, reverseSequence, nil},
	{"Slice", "a j? 1? 1? 1?", 1, slice, foldSlice},
	{"SpaceToDepth", "a", 1, spaceToDepth, nil},
	{"Split", "a l?", 1, split, foldSplit},
	{"Squeeze", "a l?", 1, squeeze, foldSame},
	{"Tile", "a l a?", 1, tile, foldTile},
	{"Transpose", "a", 1, transpose, foldTranspose},
	{"Trilu", "a l?", 14, trilu, nil},
	{"Unsqueeze", "a l?", 1, unsqueeze, foldSame},
}

// indexOps read and write elements by index.
var indexOps = []entry{
	{"Gather", "a j", 1, gather, foldGather},
	{"GatherElements", "a j", 11, gatherElements, nil},
	{"GatherND", "a l", 11, gatherND, nil},
	{"OneHot", "n n a", 9, oneHot, nil},
	{"Scatter", "a j 0", 9, scatterElements, nil},
	{"ScatterElements", "a j 0", 11, scatterElements, nil},
	{"ScatterND", "a l 0", 11, scatterND, nil},
	{"TensorScatter", "a 0 l?", 24, tensorScatter, nil},
}

// spatialOps work on [batch, channels, space…].
var spatialOps = []entry{
	{"AffineGrid", "f l", 20, affineGrid, nil},
	{"AveragePool", "f", 1, pool, nil},
	{"CausalConvWithState", "f 0 0? 0?", 27, causalConv, nil},
	{"Col2Im", "a l l", 18, col2Im, nil},
	{"Conv", "f 0 0?", 1, conv, nil},
	{"ConvInteger", "i i 0? 1?", 10, convInteger, nil},
	{"ConvTranspose", "f 0 0?", 1, convTranspose, nil},
	{"DeformConv", "f 0 0 0? 0?", 19, deformConv, nil},
	{"GlobalAveragePool", "f", 1, globalPool, nil},
	{"GlobalLpPool", "f", 1, globalPool, nil},
	{"GlobalMaxPool", "f", 1, globalPool, nil},
	{"GridSample", "a f", 16, gridSample, nil},
	{"LRN", "f", 1, lrn, nil},
	{"LpPool", "f", 1, pool, nil},
	{"MaxPool", "fi", 1, pool, nil},
	{"MaxRoiPool", "f 0", 1, maxRoiPool, nil},
	{"MaxUnpool", "f l l?", 9, maxUnpool, nil},
	{"QLinearConv", "q f 0 q f 3 f q i?", 10, qLinearConv, nil},
	{"Resize", "a f? r? l?", 10, resize, nil},
	{"RoiAlign", "f 0 l", 10, roiAlign, nil},
	{"Upsample", "a r?", 1, upsample, nil},
}

var normOps = []entry{
	{"BatchNormalization", "f f f f f", 1, batchNormalization, nil},
	{"GroupNormalization", "f 0 0", 18, groupNormalization, nil},
	{"Hardmax", "f", 1, normalised, nil},
	{"InstanceNormalization", "f 0 0", 1, instanceNormalization, nil},
	{"LayerNormalization", "f f 1?", 17, layerNormalization, nil},
	{"LogSoftmax", "f", 1, normalised, nil},
	{"LpNormalization", "f", 1, normalised, nil},
	{"MeanVarianceNormalization", "f", 9, meanVarianceNormalization, nil},
	{"NegativeLogLikelihoodLoss", "f j 0?", 12, negativeLogLikelihoodLoss, nil},
	{"RMSNormalization", "f f", 23, rmsNormalization, nil},
	{"Softmax", "f", 1, normalised, nil},
	{"SoftmaxCrossEntropyLoss", "f j 0?", 12, softmaxCrossEntropyLoss, nil},
}
