package schema

import "strings"

// from is a list of words that an attribute may hold in the versions of its operator from one on.
type from struct {
	version int
	words   string
}

// words lists what the standard's text, not its table, lets a text attribute hold. Attributes mean
// the same in all operators that have them, but for those that are listed with their operator.
// Scatter's max and min are in the text from version 18 on only: PyTorch writes them into 16, and
// ONNX Runtime computes them there.
var words = map[string][]from{
	"activation":                            {{1, "none silu swish"}},
	"aggregate_function":                    {{1, "SUM AVERAGE MIN MAX"}},
	"approximate":                           {{1, "none tanh"}},
	"auto_pad":                              {{1, "NOTSET SAME_UPPER SAME_LOWER VALID"}},
	"case_change_action":                    {{1, "NONE LOWER UPPER"}},
	"cast_to":                               {{1, "TO_FLOAT TO_STRING TO_INT64"}},
	"kernel_type":                           {{1, "LINEAR POLY RBF SIGMOID"}},
	"keep_aspect_ratio_policy":              {{1, "stretch not_larger not_smaller"}},
	"map_form":                              {{1, "DENSE SPARSE"}},
	"nearest_mode":                          {{1, "round_prefer_floor round_prefer_ceil floor ceil"}},
	"nodes_modes":                           {{1, "BRANCH_LEQ BRANCH_LT BRANCH_GTE BRANCH_GT BRANCH_EQ BRANCH_NEQ LEAF"}},
	"norm":                                  {{1, "MAX L1 L2"}},
	"padding_mode":                          {{1, "zeros border reflection"}},
	"pixel_format":                          {{1, "RGB BGR Grayscale"}},
	"post_transform":                        {{1, "NONE SOFTMAX LOGISTIC SOFTMAX_ZERO PROBIT"}},
	"round_mode":                            {{1, "up down nearest"}},
	"update_rule":                           {{1, "linear gated delta gated_delta"}},
	"BitShift.direction":                    {{1, "LEFT RIGHT"}},
	"DepthToSpace.mode":                     {{1, "DCR CRD"}},
	"GRU.direction":                         {{1, "forward reverse bidirectional"}},
	"GridSample.mode":                       {{1, "bilinear nearest bicubic"}, {20, "linear nearest cubic"}},
	"LSTM.direction":                        {{1, "forward reverse bidirectional"}},
	"Momentum.mode":                         {{1, "standard nesterov"}},
	"NegativeLogLikelihoodLoss.reduction":   {{1, "none sum mean"}},
	"Pad.mode":                              {{1, "constant reflect edge"}, {19, "constant reflect edge wrap"}},
	"RNN.direction":                         {{1, "forward reverse bidirectional"}},
	"Resize.coordinate_transformation_mode": {{1, "half_pixel pytorch_half_pixel align_corners asymmetric tf_half_pixel_for_nn tf_crop_and_resize"}, {19, "half_pixel half_pixel_symmetric pytorch_half_pixel align_corners asymmetric tf_half_pixel_for_nn tf_crop_and_resize"}},
	"Resize.mode":                           {{1, "nearest linear"}, {11, "nearest linear cubic"}},
	"RoiAlign.coordinate_transformation_mode": {{1, "half_pixel output_half_pixel"}},
	"RoiAlign.mode":                     {{1, "avg max"}},
	"ScatterElements.reduction":         {{1, "none add mul"}, {16, "none add mul max min"}},
	"ScatterND.reduction":               {{1, "none add mul"}, {16, "none add mul max min"}},
	"SoftmaxCrossEntropyLoss.reduction": {{1, "none sum mean"}},
	"SpaceToDepth.mode":                 {{1, "DCR CRD"}},
	"TensorScatter.mode":                {{1, "linear circular"}},
	"TfIdfVectorizer.mode":              {{1, "TF IDF TFIDF"}},
	"Upsample.mode":                     {{1, "nearest bilinear"}, {7, "nearest linear"}},
}

// texts are the attributes that hold any text, or text with a grammar of its own: Einsum's equation
// and the activations of recurrent layers, which operators parse.
var texts = strings.Fields(`activations cats_strings classes_strings classlabels_strings default_string delimiter equation keys_strings locale pattern pool_strings
	stopwords string_vocabulary to value_string value_strings values_strings xs y zs`)

// WordsOf returns what a text attribute of an operator may hold in a version of it; nil where the
// standard does not restrict it, and for operators that are in no domain of the table.
func WordsOf(domain, op, attribute string, version int) []string {
	if len(Versions(domain, op)) == 0 {
		return nil
	}
	list, ok := words[op+"."+attribute]
	if !ok {
		list = words[attribute]
	}
	var have []string
	for _, l := range list {
		if version >= l.version {
			have = strings.Fields(l.words)
		}
	}
	return have
}
