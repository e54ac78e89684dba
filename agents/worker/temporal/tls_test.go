package temporal

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// certified serves gRPC's health check with a certificate of its own that is valid from now on for
// some time, and returns where, and the certificate's file.
func certified(t *testing.T, valid time.Duration) (hostPort, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(grpc.Creds(credentials.NewServerTLSFromCert(&tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key})))
	h := health.NewServer()
	h.SetServingStatus("temporal.api.workflowservice.v1.WorkflowService", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(s, h)
	go s.Serve(l)
	t.Cleanup(s.Stop)
	return l.Addr().String(), ca
}

// TestCertificates: a server whose certificate has expired, or that nobody vouches for, is an error
// that says so, and one that is in order is none.
func TestCertificates(t *testing.T) {
	good, ca := certified(t, time.Hour)
	expired, old := certified(t, -time.Minute)
	cases := []struct {
		hostPort, ca, want string
	}{
		{good, ca, ""},
		{good, old, "certificate signed by unknown authority"},
		{expired, old, "certificate has expired"},
	}
	for _, c := range cases {
		a := Address{HostPort: c.hostPort, Namespace: DefaultNamespace, Queue: DefaultQueue, CA: c.ca, Objects: "mem://certificates"}
		began := time.Now()
		e, err := NewExecutor(t.Context(), ExecutorOptions{Address: a, Log: quiet{}})
		if err == nil {
			err = e.Close()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !contains(err.Error(), c.want)) {
			t.Errorf("%v, expected %q", err, c.want)
		}
		t.Logf("%v: %v", time.Since(began), err)
	}
}
