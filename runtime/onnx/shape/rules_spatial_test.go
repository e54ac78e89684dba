package shape

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func TestConvolutions(t *testing.T) {
	runCases(t, 34, []opCase{
		{"Conv", 11, in("float32[b,3,8,9]", "float32[6,3,3,3]", "float32[6]"), nil, out("float32[b,6,6,7]"), ""},
		{"Conv", 11, in("float32[b,4,l]", "float32[6,2,3]"), attrs(ints("pads", 1, 1), i("group", 2)), out("float32[b,6,l]"), ""},
		{"Conv", 11, in("float32[b,4,l]", "float32[6,4,3]"), attrs(ints("strides", 2)), out("float32[b,6,floor((l-3)/2)+1]"), ""},
		{"Conv", 11, in("float32[1,1,10]", "float32[1,1,3]"), attrs(ints("dilations", 3), ints("strides", 2)), out("float32[1,1,2]"), ""},
		{"Conv", 11, in("float32[1,1,10]", "float32[1,1,3]"), attrs(str("auto_pad", "SAME_UPPER"), ints("strides", 3)), out("float32[1,1,4]"), ""},
		{"Conv", 11, in("float32[1,1,10]", "float32[1,1,3]"), attrs(str("auto_pad", "VALID"), ints("pads", 5, 5)), out("float32[1,1,8]"), ""},
		{"Conv", 11, in("float32[1,1,4,5,6]", "float32[2,1,2,2,2]"), nil, out("float32[1,2,3,4,5]"), ""},
		{"Conv", 11, in("float32[...]", "float32[2,1,2]"), nil, out("float32[?,2,?]"), ""},
		{"Conv", 11, in("float32[b,3,8]", "float32[6,4,3]"), nil, nil, "has 3 channels, but weights float32[6,4,3] in 1 groups want 4"},
		{"Conv", 11, in("float32[b,3,8]", "float32[6,3,3,3]"), nil, nil, "must have the rank of input"},
		{"Conv", 11, in("float32[b,3,2]", "float32[6,3,3]"), nil, nil, "the kernel covers 3 elements, but spatial axis 0 has 2"},
		{"Conv", 11, in("float32[b,3,8]", "float32[6,3,3]", "float32[5]"), nil, nil, "but there are 6 output channels"},
		{"Conv", 11, in("float32[b,3,8]", "float32[6,3,3]"), attrs(ints("strides", 0)), nil, "attribute \"strides\" is [0]"},
		{"Conv", 11, in("float32[b,3,8]", "float32[6,3,3]"), attrs(ints("pads", 1)), nil, "attribute \"pads\" has 1 numbers, want 2"},
		{"Conv", 11, in("float32[b,3,8]", "float32[6,3,3]"), attrs(str("auto_pad", "SAME")), nil, "auto_pad \"SAME\" is none of"},
		{"Conv", 11, in("float32[b,3]", "float32[6,3]"), nil, nil, "at least one spatial axis"},
		{"ConvTranspose", 11, in("float32[b,6,8]", "float32[6,2,3]"), attrs(ints("strides", 2), ints("pads", 1, 1), ints("output_padding", 1), i("group", 2)), out("float32[b,4,16]"), ""},
		{"ConvTranspose", 11, in("float32[b,6,l]", "float32[6,2,3]"), attrs(ints("strides", 2)), out("float32[b,2,l*2+1]"), ""},
		{"ConvTranspose", 11, in("float32[b,6,8]", "float32[6,2,3]"), attrs(ints("strides", 2), str("auto_pad", "SAME_LOWER")), out("float32[b,2,16]"), ""},
		{"ConvTranspose", 11, in("float32[b,6,8]", "float32[6,2,3]"), attrs(ints("output_shape", 9)), out("float32[b,2,9]"), ""},
		{"ConvTranspose", 11, in("float32[b,5,8]", "float32[6,2,3]"), nil, nil, "must be equal"},
		{"ConvInteger", 10, in("uint8[1,1,3,3]", "uint8[1,1,2,2]", "uint8[]"), nil, out("int32[1,1,2,2]"), ""},
		{"DeformConv", 19, in("float32[1,1,3,3]", "float32[1,1,2,2]", "float32[1,8,2,2]"), nil, out("float32[1,1,2,2]"), ""},
		{"CausalConvWithState", 27, in("float32[b,4,t]", "float32[4,1,3]", "float32[4]", "float32[b,4,2]"), nil, out("float32[b,4,t]", "float32[b,4,2]"), ""},
		{"MaxPool", 12, in("float32[b,3,8,w]"), attrs(ints("kernel_shape", 2, 2), ints("strides", 2, 2)), out("float32[b,3,4,floor((w-2)/2)+1]", "int64[b,3,4,floor((w-2)/2)+1]"), ""},
		{"MaxPool", 12, in("float32[1,1,4]"), attrs(ints("kernel_shape", 3), ints("strides", 2), i("ceil_mode", 1)), out("float32[1,1,2]"), ""},
		{"AveragePool", 19, in("float32[1,1,2]"), attrs(ints("kernel_shape", 1), ints("strides", 2), i("ceil_mode", 1)), out("float32[1,1,1]"), ""},
		{"AveragePool", 11, in("float32[1,1,8]"), nil, nil, "attribute \"kernel_shape\" is missing"},
		{"MaxPool", 12, in("float32[1,1,8]"), attrs(ints("kernel_shape", 3, 3)), nil, "input float32[1,1,8] has 1 spatial axes"},
		{"GlobalAveragePool", 1, in("float32[b,3,h,w]"), nil, out("float32[b,3,1,1]"), ""},
		{"MaxUnpool", 11, in("float32[1,1,2,2]", "int64[1,1,2,2]"), attrs(ints("kernel_shape", 2, 2), ints("strides", 2, 2)), out("float32[1,1,4,4]"), ""},
		{"MaxUnpool", 11, in("float32[1,1,2,2]", "int64[1,1,2,2]", "int64[4]=1,1,5,5"), attrs(ints("kernel_shape", 2, 2)), out("float32[1,1,5,5]"), ""},
		{"MaxRoiPool", 1, in("float32[1,3,8,8]", "float32[r,5]"), attrs(ints("pooled_shape", 2, 3)), out("float32[r,3,2,3]"), ""},
		{"RoiAlign", 16, in("float32[1,3,8,8]", "float32[r,4]", "int64[r]"), attrs(i("output_height", 2), i("output_width", 3)), out("float32[r,3,2,3]"), ""},
	})
}

func TestSamplingAndSignals(t *testing.T) {
	runCases(t, 34, []opCase{
		{"Resize", 18, in("float32[1,3,4,5]", "", "", "int64[1]"), attrs(ints("axes", 2, 3)), nil, "1 sizes for 2 axes"},
		{"Resize", 18, in("float32[1,3,4,5]", "", "", "int64[]"), attrs(ints("axes", 2, 3)), nil, "want rank 1"},
		{"Resize", 13, in("float32[b,3,4,w]", "", "float32[4]=1,1,2,2"), nil, out("float32[b,3,8,w*2]"), ""},
		{"Resize", 13, in("float32[1,1,5]", "", "float32[3]=1,1,0.6"), nil, out("float32[1,1,3]"), ""},
		{"Resize", 13, in("float32[b,3,4,w]", "", "", "int64[4]=b,3,7,9"), nil, out("float32[b,3,7,9]"), ""},
		{"Resize", 13, in("float32[b,3,4,w]", "float32[0]=", "float32[0]=", "int64[4]=b,3,7,9"), nil, out("float32[b,3,7,9]"), ""},
		{"Resize", 10, in("float32[1,1,2,2]", "float32[4]=1,1,2,3"), nil, out("float32[1,1,4,6]"), ""},
		{"Resize", 18, in("float32[b,3,4,4]", "", "", "int64[2]=7,9"), attrs(ints("axes", 2, 3)), out("float32[b,3,7,9]"), ""},
		{"Resize", 18, in("float32[1,1,2,4]", "", "", "int64[2]=7,8"), attrs(ints("axes", 2, 3), str("keep_aspect_ratio_policy", "not_larger")), out("float32[1,1,4,8]"), ""},
		{"Resize", 18, in("float32[1,1,2,4]", "", "", "int64[2]=7,8"), attrs(ints("axes", 2, 3), str("keep_aspect_ratio_policy", "not_smaller")), out("float32[1,1,7,14]"), ""},
		{"Resize", 13, in("float32[1,1,2]", "", "float32[2]=1,1"), nil, nil, "2 scales for 3 axes"},
		{"Resize", 13, in("float32[1,1,2]", "", "float32[3]=1,1,-1"), nil, nil, "scale -1 for axis 2"},
		{"Resize", 13, in("float32[1,1,2]", "", "", "int64[3]=1,1,-1"), nil, nil, "size -1 for axis 2"},
		{"Upsample", 9, in("float32[1,1,2,2]", "float32[4]=1,1,2,3"), nil, out("float32[1,1,4,6]"), ""},
		{"Upsample", 7, in("float32[1,1,2,2]"), attrs(onnx.AttrFloats("scales", 1, 1, 2, 3)), out("float32[1,1,4,6]"), ""},
		{"GridSample", 20, in("float32[b,3,8,9]", "float32[b,4,5,2]"), nil, out("float32[b,3,4,5]"), ""},
		{"GridSample", 20, in("float32[b,3,8,9]", "float32[b,4,5,3]"), nil, nil, "must hold the 2 coordinates"},
		{"AffineGrid", 20, in("float32[2,2,3]", "int64[4]=2,3,5,6"), nil, out("float32[2,5,6,2]"), ""},
		{"AffineGrid", 20, in("float32[2,2,3]", "int64[5]=2,3,5,6,7"), nil, nil, "want float32[2,3,4]"},
		{"DFT", 20, in("float32[b,10,1]"), attrs(i("onesided", 1)), out("float32[b,6,2]"), ""},
		{"DFT", 20, in("float32[b,10,3,2]", "int64[]=8", "int64[]=1"), nil, out("float32[b,8,3,2]"), ""},
		{"DFT", 20, in("float32[b,1,2]"), attrs(i("onesided", 1), i("inverse", 1)), nil, "dft_length is 0"},
		{"DFT", 20, in("float32[b,6,2]"), attrs(i("onesided", 1), i("inverse", 1)), out("float32[b,10,1]"), ""},
		{"DFT", 17, in("float32[b,10,3,1]", "int64[]=8"), attrs(i("axis", 1)), out("float32[b,8,3,2]"), ""},
		{"DFT", 20, in("float32[b,10,2]", "", "int64[]=2"), nil, nil, "axis 2 holds real and imaginary parts"},
		{"STFT", 17, in("float32[b,128,1]", "int64[]=8", "float32[16]"), nil, out("float32[b,15,9,2]"), ""},
		{"STFT", 17, in("float32[b,n,1]", "int64[]=8", "", "int64[]=16"), attrs(i("onesided", 0)), out("float32[b,floor((n-16)/8)+1,16,2]"), ""},
		{"HannWindow", 17, in("int64[]=10"), nil, out("float32[10]"), ""},
		{"HammingWindow", 17, in("int32[]"), attrs(i("output_datatype", int(tensor.Float64))), out("float64[?]"), ""},
		{"MelWeightMatrix", 17, in("int64[]=8", "int64[]=16", "int64[]", "float32[]", "float32[]"), nil, out("float32[9,8]"), ""},
		{"QuantizeLinear", 13, in("float32[b,3]", "float32[]", "int8[]"), nil, out("int8[b,3]"), ""},
		{"QuantizeLinear", 21, in("float32[b,3]", "float32[3]"), attrs(i("output_dtype", int(tensor.Uint16))), out("uint16[b,3]"), ""},
		{"DequantizeLinear", 19, in("int8[b,3]", "float16[]", "int8[]"), nil, out("float16[b,3]"), ""},
		{"DynamicQuantizeLinear", 11, in("float32[b,3]"), nil, out("uint8[b,3]", "float32[]", "uint8[]"), ""},
	})
}

func TestAttentionAndRecurrence(t *testing.T) {
	runCases(t, 17, []opCase{
		{"Attention", 23, in("float32[b,8,q,64]", "float32[b,2,k,64]", "float32[b,2,k,32]"), nil,
			out("float32[b,8,q,32]", "float32[b,2,k,64]", "float32[b,2,k,32]", "float32[b,8,q,k]"), ""},
		{"Attention", 23, in("float32[b,q,24]", "float32[b,k,24]", "float32[b,k,30]"), attrs(i("q_num_heads", 3), i("kv_num_heads", 3)), out("float32[b,q,30]"), ""},
		{"Attention", 23, in("float32[b,3,q,8]", "float32[b,3,k,8]", "float32[b,3,k,8]", "", "float32[b,3,p,8]", "float32[b,3,p,8]"), nil,
			out("float32[b,3,q,8]", "float32[b,3,k+p,8]"), ""},
		{"Attention", 23, in("float32[b,q,24]", "float32[b,k,24]", "float32[b,k,24]"), nil, nil, "needs attribute \"q_num_heads\""},
		{"Attention", 23, in("float32[b,3,q,8]", "float32[b,3,4,8]", "float32[b,3,5,8]"), nil, nil, "length of K and V"},
		{"Attention", 23, in("float32[b,3,q,8]", "float32[b,2,k,8]", "float32[b,2,k,8]"), nil, nil, "3 heads of Q do not divide into 2"},
		{"LinearAttention", 27, in("float32[b,t,32]", "float32[b,t,16]", "float32[b,t,24]", "", "float32[b,t,2]", "float32[b,t,2]"),
			attrs(i("q_num_heads", 4), i("kv_num_heads", 2)), out("float32[b,t,48]", "float32[b,2,8,12]"), ""},
		{"RotaryEmbedding", 23, in("float32[b,4,t,8]", "float32[50,4]", "float32[50,4]", "int64[b,t]"), nil, out("float32[b,4,t,8]"), ""},
		{"com.microsoft.MultiHeadAttention", 17, in("float32[b,t,32]", "float32[b,t,32]", "float32[b,t,48]"), attrs(i("num_heads", 4)), out("float32[b,t,48]"), ""},
		{"com.microsoft.UnfoldTensor", 17, in("float32[b,10]"), attrs(i("size", 4), i("step", 2)), out("float32[b,4,4]"), ""},
		{"com.microsoft.Gelu", 17, in("float32[b,10]"), nil, out("float32[b,10]"), ""},
		{"RNN", 14, in("float32[t,b,5]", "float32[1,6,5]", "float32[1,6,6]"), nil, out("float32[t,1,b,6]", "float32[1,b,6]"), ""},
		{"GRU", 14, in("float32[b,t,5]", "float32[1,18,5]", "float32[1,18,6]"), attrs(i("layout", 1)), out("float32[b,t,1,6]", "float32[b,1,6]"), ""},
		{"LSTM", 14, in("float32[t,2,5]", "float32[1,24,5]", "float32[1,24,6]", "", "int32[2]", "float32[1,2,6]", "float32[1,2,6]", "float32[1,18]"), nil,
			out("float32[t,1,2,6]", "float32[1,2,6]", "float32[1,2,6]"), ""},
		{"LSTM", 14, in("float32[t,2,5]", "float32[1,24,5]", "float32[1,24,6]", "", "", "float32[1,3,6]"), nil, nil, "want float32[1,2,6]"},
		{"LSTM", 14, in("float32[t,2,5]", "float32[1,24,5]", "float32[1,24,6]"), attrs(i("hidden_size", 7)), nil, "must be equal"},
		{"LSTM", 14, in("float32[t,2,5]", "float32[1,24,5]", "float32[1,24,6]"), attrs(str("direction", "both")), nil, "is none of forward"},
	})
}

func TestSequencesAndText(t *testing.T) {
	runCases(t, 22, []opCase{
		{"SequenceConstruct", 11, in("float32[2,3]", "float32[2,4]"), nil, out("seq float32[2,?]"), ""},
		{"SequenceConstruct", 11, in("float32[2,3]", "float32[2]"), nil, out("seq float32[...]"), ""},
		{"SequenceEmpty", 11, in(), attrs(i("dtype", int(tensor.Int64))), out("seq int64[...]"), ""},
		{"SequenceInsert", 11, in("seq float32[2,3]", "float32[2,3]"), nil, out("seq float32[2,3]"), ""},
		{"SequenceInsert", 11, in("seq float32[2,3]", "int64[2,3]"), nil, nil, "elements of one sequence"},
		{"SequenceAt", 11, in("seq float32[2,?]", "int64[]"), nil, out("float32[2,?]"), ""},
		{"SequenceAt", 11, in("float32[2,3]", "int64[]"), nil, nil, "is a tensor, want sequence"},
		{"SequenceErase", 11, in("seq float32[2]"), nil, out("seq float32[2]"), ""},
		{"SequenceLength", 11, in("seq float32[2]"), nil, out("int64[]"), ""},
		{"ConcatFromSequence", 11, in("seq float32[2,3]"), attrs(i("axis", 1)), out("float32[2,?]"), ""},
		{"ConcatFromSequence", 11, in("seq float32[2,3]"), attrs(i("axis", -1), i("new_axis", 1)), out("float32[2,3,?]"), ""},
		{"SplitToSequence", 11, in("float32[6,b]"), nil, out("seq float32[1,b]"), ""},
		{"SplitToSequence", 11, in("float32[6,b]"), attrs(i("keepdims", 0)), out("seq float32[b]"), ""},
		{"SplitToSequence", 11, in("float32[6,b]", "int64[]=3"), nil, out("seq float32[3,b]"), ""},
		{"SplitToSequence", 11, in("float32[6,b]", "int64[2]=4,2"), nil, out("seq float32[?,b]"), ""},
		{"Optional", 15, in("float32[2]"), nil, out("opt float32[2]"), ""},
		{"OptionalGetElement", 15, in("opt float32[2]"), nil, out("float32[2]"), ""},
		{"OptionalHasElement", 18, in(""), nil, out("bool[]=0"), ""},
		{"StringConcat", 20, in("string[2,1]", "string[3]"), nil, out("string[2,3]"), ""},
		{"StringSplit", 20, in("string[2]"), nil, out("string[2,?]", "int64[2]"), ""},
		{"RegexFullMatch", 20, in("string[2]"), nil, out("bool[2]"), ""},
		{"TfIdfVectorizer", 9, in("int64[b,9]"), attrs(ints("ngram_indexes", 0, 3, 1), ints("pool_int64s", 7, 8, 9), ints("ngram_counts", 0), i("min_gram_length", 1), i("max_gram_length", 1)), out("float32[b,4]"), ""},
	})
}
