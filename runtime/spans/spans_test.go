package spans

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
)

func at(us int) time.Time { return time.UnixMicro(1_000_000 + int64(us)) }

// From a bar to its order: the stages follow each other within the whole, which belongs to the
// trace of the bar, and the order carries it on.
func TestTrace(t *testing.T) {
	r := tracetest.NewSpanRecorder()
	tracer := New(sdk.NewTracerProvider(sdk.WithSpanProcessor(r)), "live")
	var w Trace
	for n, err := range []error{nil, errors.New("broken \xff")} {
		tracer.Begin(t.Context(), &w, "bar", at(0), Carrier{"00-" + traceID + "-" + spanID + "-01", "vendor=1"})
		w.Mark("features", at(10))
		w.Mark("policy", at(15))
		order := w.Carrier()
		w.Mark("send", at(40))
		w.End(at(45), err, attribute.String("symbol", "AAPL"))
		w.End(at(99), nil) // it has ended
		list := r.Ended()
		if len(list) != 4*(n+1) {
			t.Fatalf("%d spans", len(list))
		}
		list = list[4*n:]
		whole := list[3]
		if whole.Name() != "bar" || whole.SpanKind() != trace.SpanKindConsumer || whole.SpanContext().TraceID().String() != traceID || whole.Parent().SpanID().String() != spanID || !whole.StartTime().Equal(at(0)) || !whole.EndTime().Equal(at(45)) {
			t.Errorf("%v", whole)
		}
		if want := "00-" + traceID + "-" + whole.SpanContext().SpanID().String() + "-01"; order.Traceparent != want || order.Tracestate != "vendor=1" {
			t.Errorf("the order carries %v, expected %s", order, want)
		}
		if got := whole.Status(); (got.Code == codes.Error) != (err != nil) || err != nil && got.Description != "broken \uFFFD" {
			t.Errorf("%v", got)
		}
		if a := whole.Attributes(); len(a) != 1 || a[0].Value.AsString() != "AAPL" {
			t.Errorf("%v", a)
		}
		since := at(0)
		for i, want := range []struct {
			name string
			end  time.Time
		}{{"features", at(10)}, {"policy", at(15)}, {"send", at(40)}} {
			s := list[i]
			if s.Name() != want.name || !s.StartTime().Equal(since) || !s.EndTime().Equal(want.end) || s.Parent().SpanID() != whole.SpanContext().SpanID() {
				t.Errorf("%s from %v to %v", s.Name(), s.StartTime(), s.EndTime())
			}
			since = want.end
		}
	}
}

// A trace that nobody samples has no spans and is carried on all the same; stages beyond the last
// belong to that; and what names no trace begins one.
func TestEdges(t *testing.T) {
	r := tracetest.NewSpanRecorder()
	tracer := New(sdk.NewTracerProvider(sdk.WithSpanProcessor(r), sdk.WithSampler(sdk.ParentBased(sdk.AlwaysSample()))), "live")
	var w Trace
	tracer.Begin(t.Context(), &w, "bar", at(0), Carrier{Traceparent: "00-" + traceID + "-" + spanID + "-00"})
	w.Mark("features", at(1))
	if c := w.Carrier(); len(c.Traceparent) != 55 || c.Traceparent[3:35] != traceID || c.Traceparent[53:] != "00" {
		t.Errorf("%v", c)
	}
	w.End(at(2), nil)
	if n := len(r.Ended()); n != 0 {
		t.Errorf("%d spans of a trace that is not sampled", n)
	}
	tracer.Begin(t.Context(), &w, "bar", at(0), Carrier{Traceparent: "nonsense"})
	for i := range Stages + 3 {
		w.Mark(fmt.Sprint(i), at(i+1))
	}
	w.End(at(100), nil)
	list := r.Ended()
	if len(list) != Stages+1 || !list[Stages-1].EndTime().Equal(at(Stages+3)) || list[Stages].Parent().IsValid() {
		t.Errorf("%d spans", len(list))
	}
}

// Without a tracer nothing is traced, nothing allocated, and the trace of a message is carried on.
func TestNoTracer(t *testing.T) {
	tracer := New(nil, "live")
	var w Trace
	from := Carrier{Traceparent: "00-" + traceID + "-" + spanID + "-01"}
	now, ctx := time.Now(), t.Context()
	if n := testing.AllocsPerRun(100, func() {
		tracer.Begin(ctx, &w, "bar", now, from)
		w.Mark("features", now)
		if w.Carrier() != from {
			t.Error("another trace")
		}
		w.End(now, nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The cost of stages while the work goes on.
func TestMarkAllocatesNothing(t *testing.T) {
	tracer := New(sdk.NewTracerProvider(), "live")
	var w Trace
	tracer.Begin(t.Context(), &w, "bar", at(0), Carrier{})
	now := at(1)
	if n := testing.AllocsPerRun(100, func() { w.Mark("features", now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	w.End(at(2), nil)
}

func BenchmarkBarToOrder(b *testing.B) {
	for name, tracer := range sorted.All(map[string]*Tracer{"off": nil, "unsampled": New(sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample())), "live"), "sampled": New(sdk.NewTracerProvider(), "live")}) {
		b.Run(name, func(b *testing.B) {
			var w Trace
			ctx, now := b.Context(), time.Now()
			b.ReportAllocs()
			for b.Loop() {
				tracer.Begin(ctx, &w, "bar", now, Carrier{})
				w.Mark("features", now)
				w.Mark("policy", now)
				w.Mark("send", now)
				w.End(now, nil)
			}
		})
	}
}
