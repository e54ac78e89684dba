package grpcapi

import (
	"context"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/export/serve/oip"
)

// ServerLive reports whether the process works.
func (s *service) ServerLive(context.Context, *inference.ServerLiveRequest) (*inference.ServerLiveResponse, error) {
	return &inference.ServerLiveResponse{Live: s.service.Live()}, nil
}

// ServerReady reports whether the server takes requests.
func (s *service) ServerReady(context.Context, *inference.ServerReadyRequest) (*inference.ServerReadyResponse, error) {
	return &inference.ServerReadyResponse{Ready: s.service.Ready()}, nil
}

// ModelReady reports whether a model takes requests.
func (s *service) ModelReady(_ context.Context, r *inference.ModelReadyRequest) (*inference.ModelReadyResponse, error) {
	err := s.service.ModelReady(r.GetName(), r.GetVersion())
	if c := serve.CodeOf(err); err != nil && c != serve.NotFound && c != serve.NotReady {
		return nil, toStatus(err)
	}
	return &inference.ModelReadyResponse{Ready: err == nil}, nil
}

// ServerMetadata describes the server.
func (s *service) ServerMetadata(context.Context, *inference.ServerMetadataRequest) (*inference.ServerMetadataResponse, error) {
	return &inference.ServerMetadataResponse{Name: s.Name, Version: s.Version, Extensions: oip.Extensions}, nil
}

// ModelMetadata describes a version.
func (s *service) ModelMetadata(_ context.Context, r *inference.ModelMetadataRequest) (*inference.ModelMetadataResponse, error) {
	m, err := s.service.Metadata(r.GetName(), r.GetVersion())
	if err != nil {
		return nil, toStatus(err)
	}
	d := oip.NewModelMetadata(m)
	ports := func(list []oip.TensorMetadata) []*inference.ModelMetadataResponse_TensorMetadata {
		out := make([]*inference.ModelMetadataResponse_TensorMetadata, 0, len(list))
		for _, p := range list {
			out = append(out, &inference.ModelMetadataResponse_TensorMetadata{Name: p.Name, Datatype: p.Datatype, Shape: int64s(p.Shape)})
		}
		return out
	}
	return &inference.ModelMetadataResponse{Name: d.Name, Versions: d.Versions, Platform: d.Platform, Inputs: ports(d.Inputs), Outputs: ports(d.Outputs)}, nil
}

// ModelConfig returns the configuration, as Triton's.
func (s *service) ModelConfig(_ context.Context, r *inference.ModelConfigRequest) (*inference.ModelConfigResponse, error) {
	m, err := s.service.Metadata(r.GetName(), r.GetVersion())
	if err != nil {
		return nil, toStatus(err)
	}
	c, err := s.service.Config(r.GetName(), r.GetVersion())
	if err != nil {
		return nil, toStatus(err)
	}
	d := oip.NewModelConfig(m, c)
	out := &inference.ModelConfig{Name: d.Name, Platform: d.Platform, Backend: d.Backend, MaxBatchSize: int32(d.MaxBatchSize), DefaultModelFilename: d.ModelFile, Parameters: map[string]*inference.ModelParameter{}}
	for _, p := range d.Input {
		out.Input = append(out.Input, &inference.ModelInput{Name: p.Name, DataType: inference.DataType(inference.DataType_value[p.DataType]), Dims: int64s(p.Dims)})
	}
	for _, p := range d.Output {
		out.Output = append(out.Output, &inference.ModelOutput{Name: p.Name, DataType: inference.DataType(inference.DataType_value[p.DataType]), Dims: int64s(p.Dims)})
	}
	for _, g := range d.InstanceGroup {
		out.InstanceGroup = append(out.InstanceGroup, &inference.ModelInstanceGroup{Count: int32(g.Count), Kind: inference.ModelInstanceGroup_KIND_CPU})
	}
	for k, v := range d.Parameters {
		out.Parameters[k] = &inference.ModelParameter{StringValue: v.StringValue}
	}
	switch p := d.VersionPolicy; {
	case p.All != nil:
		out.VersionPolicy = &inference.ModelVersionPolicy{PolicyChoice: &inference.ModelVersionPolicy_All_{All: &inference.ModelVersionPolicy_All{}}}
	case p.Specific != nil:
		list := &inference.ModelVersionPolicy_Specific{}
		for _, v := range p.Specific.Versions { // digests and aliases have no number
			if n, err := strconv.ParseInt(v, 10, 64); err == nil {
				list.Versions = append(list.Versions, n)
			}
		}
		out.VersionPolicy = &inference.ModelVersionPolicy{PolicyChoice: &inference.ModelVersionPolicy_Specific_{Specific: list}}
	case p.Latest != nil:
		out.VersionPolicy = &inference.ModelVersionPolicy{PolicyChoice: &inference.ModelVersionPolicy_Latest_{Latest: &inference.ModelVersionPolicy_Latest{NumVersions: uint32(p.Latest.NumVersions)}}}
	}
	if b := d.DynamicBatching; b != nil {
		batching := &inference.ModelDynamicBatching{MaxQueueDelayMicroseconds: uint64(b.MaxQueueDelayMicrosecond)}
		for _, n := range b.PreferredBatchSize {
			batching.PreferredBatchSize = append(batching.PreferredBatchSize, int32(n))
		}
		out.SchedulingChoice = &inference.ModelConfig_DynamicBatching{DynamicBatching: batching}
	}
	if b := d.SequenceBatching; b != nil {
		out.SchedulingChoice = &inference.ModelConfig_SequenceBatching{SequenceBatching: sequenceBatching(b)}
	}
	return &inference.ModelConfigResponse{Config: out}, nil
}

func sequenceBatching(b *oip.SequenceBatching) *inference.ModelSequenceBatching {
	dtype := func(name string) inference.DataType { return inference.DataType(inference.DataType_value[name]) }
	out := &inference.ModelSequenceBatching{MaxSequenceIdleMicroseconds: uint64(b.MaxSequenceIdleMicroseconds)}
	for _, in := range b.ControlInput {
		c := &inference.ModelSequenceBatching_ControlInput{Name: in.Name}
		for _, k := range in.Control {
			c.Control = append(c.Control, &inference.ModelSequenceBatching_Control{
				Kind: inference.ModelSequenceBatching_Control_Kind(inference.ModelSequenceBatching_Control_Kind_value[k.Kind]), DataType: dtype(k.DataType),
				Int32FalseTrue: k.Int32FalseTrue, Fp32FalseTrue: k.Fp32FalseTrue, BoolFalseTrue: k.BoolFalseTrue,
			})
		}
		out.ControlInput = append(out.ControlInput, c)
	}
	for _, s := range b.State {
		state := &inference.ModelSequenceBatching_State{InputName: s.InputName, OutputName: s.OutputName, DataType: dtype(s.DataType), Dims: int64s(s.Dims)}
		for _, i := range s.InitialState {
			initial := &inference.ModelSequenceBatching_InitialState{Name: i.Name, DataType: dtype(i.DataType), Dims: int64s(i.Dims)}
			if i.DataFile != "" {
				initial.StateData = &inference.ModelSequenceBatching_InitialState_DataFile{DataFile: i.DataFile}
			} else {
				initial.StateData = &inference.ModelSequenceBatching_InitialState_ZeroData{ZeroData: i.ZeroData}
			}
			state.InitialState = append(state.InitialState, initial)
		}
		out.State = append(out.State, state)
	}
	switch {
	case b.Direct != nil:
		out.StrategyChoice = &inference.ModelSequenceBatching_Direct{Direct: &inference.ModelSequenceBatching_StrategyDirect{}}
	case b.Oldest != nil:
		out.StrategyChoice = &inference.ModelSequenceBatching_Oldest{Oldest: &inference.ModelSequenceBatching_StrategyOldest{MaxCandidateSequences: int32(b.Oldest.MaxCandidateSequences)}}
	}
	return out
}

func int64s(v []int) []int64 {
	out := make([]int64, len(v))
	for i := range v {
		out[i] = int64(v[i])
	}
	return out
}

// ModelStatistics returns statistics of one version, of a model or of all.
func (s *service) ModelStatistics(_ context.Context, r *inference.ModelStatisticsRequest) (*inference.ModelStatisticsResponse, error) {
	list, err := s.service.Statistics(r.GetName(), r.GetVersion())
	if err != nil {
		return nil, toStatus(err)
	}
	d := func(v oip.Duration) *inference.StatisticDuration {
		return &inference.StatisticDuration{Count: v.Count, Ns: v.NS}
	}
	out := &inference.ModelStatisticsResponse{}
	for _, m := range oip.NewStatistics(list).ModelStats {
		i := m.Inference
		p := &inference.ModelStatistics{
			Name: m.Name, Version: m.Version, LastInference: m.LastInference, InferenceCount: m.InferenceCount, ExecutionCount: m.ExecutionCount,
			InferenceStats: &inference.InferStatistics{Success: d(i.Success), Fail: d(i.Fail), Queue: d(i.Queue), ComputeInput: d(i.ComputeInput), ComputeInfer: d(i.ComputeInfer), ComputeOutput: d(i.ComputeOutput)},
		}
		for _, b := range m.Batches {
			p.BatchStats = append(p.BatchStats, &inference.InferBatchStatistics{BatchSize: uint64(b.BatchSize), ComputeInput: d(b.ComputeInput), ComputeInfer: d(b.ComputeInfer), ComputeOutput: d(b.ComputeOutput)})
		}
		out.ModelStats = append(out.ModelStats, p)
	}
	return out, nil
}

// RepositoryIndex lists versions and their states.
func (s *service) RepositoryIndex(_ context.Context, r *inference.RepositoryIndexRequest) (*inference.RepositoryIndexResponse, error) {
	out := &inference.RepositoryIndexResponse{}
	for _, m := range s.service.Index(r.GetReady()) {
		out.Models = append(out.Models, &inference.RepositoryIndexResponse_ModelIndex{Name: m.Name, Version: m.Version, State: string(m.State), Reason: m.Reason})
	}
	return out, nil
}

// RepositoryModelLoad loads or reloads a model.
func (s *service) RepositoryModelLoad(ctx context.Context, r *inference.RepositoryModelLoadRequest) (*inference.RepositoryModelLoadResponse, error) {
	o, err := loadOptions(r)
	if err == nil {
		err = s.service.Load(ctx, r.GetModelName(), o)
		if serve.CodeOf(err) == serve.InvalidArgument {
			return nil, loadFailure{failure{err}}
		}
	}
	if err != nil {
		return nil, toStatus(err)
	}
	return &inference.RepositoryModelLoadResponse{}, nil
}

func loadOptions(r *inference.RepositoryModelLoadRequest) (o serve.LoadOptions, err error) {
	if err := oip.CheckModel(r.GetModelName()); err != nil {
		return o, err
	}
	for name, v := range r.GetParameters() {
		path, isFile := strings.CutPrefix(name, "file:")
		switch c := v.GetParameterChoice().(type) {
		case *inference.ModelRepositoryParameter_StringParam:
			if name == "config" {
				o.Config = []byte(c.StringParam)
				continue
			}
		case *inference.ModelRepositoryParameter_BytesParam:
			if isFile {
				if err := oip.CheckPath(path); err != nil {
					return o, err
				}
				if o.Files == nil {
					o.Files = map[string][]byte{}
				}
				o.Files[path] = c.BytesParam
				continue
			}
		}
		return o, bad("parameter %q: expected config as a string, or file:PATH as bytes", name)
	}
	return o, nil
}

// RepositoryModelUnload stops serving a model.
func (s *service) RepositoryModelUnload(ctx context.Context, r *inference.RepositoryModelUnloadRequest) (*inference.RepositoryModelUnloadResponse, error) {
	if err := oip.CheckModel(r.GetModelName()); err != nil {
		return nil, toStatus(err)
	}
	if err := s.service.Unload(ctx, r.GetModelName()); err != nil {
		return nil, toStatus(err)
	}
	return &inference.RepositoryModelUnloadResponse{}, nil
}
