package grpcapi

import (
	"crypto/tls"
	"net"
	"net/http/httptest"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/export/serve/internal/oiptest"
)

func TestTLS(t *testing.T) {
	ts := httptest.NewTLSServer(nil) // for its certificate
	defer ts.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(&oiptest.Service{}, Options{TLS: &tls.Config{Certificates: ts.TLS.Certificates, NextProtos: []string{"h2"}}})
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	for _, c := range []struct {
		creds credentials.TransportCredentials
		want  codes.Code
	}{{credentials.NewTLS(&tls.Config{InsecureSkipVerify: true}), codes.OK}, {insecure.NewCredentials(), codes.Unavailable}} {
		conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(c.creds))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inference.NewGRPCInferenceServiceClient(conn).ModelInfer(t.Context(), addition()); status.Code(err) != c.want {
			t.Errorf("%v, expected %v", err, c.want)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	server.Stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
