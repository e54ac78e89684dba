// Command temporal-server is a Temporal server of one process, for tests: its state is in a SQLite
// file, so that a server that is killed goes on when it is started again.
//
//	temporal-server DATABASE PORT NAMESPACE...
//
// It is a module of its own, and no part of the programs.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/metrics"
	sqliteplugin "go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

const host = "127.0.0.1"

// shards is how many parts the workflows are kept in. What a part has to hand out is read 20 times a
// second at most (history.transferProcessorMaxPollRPS), and a task of ours is handed out three times:
// with one part, which is what small servers have, each time waits for up to 50 ms.
const shards = 16

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "temporal-server:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("usage: temporal-server DATABASE PORT NAMESPACE...")
	}
	port, err := strconv.Atoi(args[1])
	if err != nil {
		return fmt.Errorf("port: %w", err)
	}
	c := settings(args[0], port)
	sql := c.Persistence.DataStores[sqliteplugin.PluginName].SQL
	if _, err := os.Stat(args[0]); os.IsNotExist(err) {
		if err := sqlite.SetupSchema(sql); err != nil {
			return fmt.Errorf("set up %s: %w", args[0], err)
		}
	}
	var namespaces []*sqlite.NamespaceConfig
	for _, name := range args[2:] {
		n, err := sqlite.NewNamespaceConfig("active", name, false, nil)
		if err != nil {
			return err
		}
		namespaces = append(namespaces, n)
	}
	if err := sqlite.CreateNamespaces(sql, namespaces...); err != nil {
		return fmt.Errorf("namespaces: %w", err)
	}
	hosts := map[primitives.ServiceName]static.Hosts{}
	for i, name := range []primitives.ServiceName{primitives.FrontendService, primitives.HistoryService, primitives.MatchingService, primitives.WorkerService} {
		hosts[name] = static.SingleLocalHost(fmt.Sprintf("%s:%d", host, port+i))
	}
	s, err := temporal.NewServer(
		temporal.WithConfig(c), temporal.ForServices(temporal.DefaultServices), temporal.WithStaticHosts(hosts),
		temporal.WithLogger(log.NewZapLogger(log.BuildZapLogger(log.Config{Stdout: false, Level: "error"}))),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return authorization.NewNoopClaimMapper() }),
	)
	if err != nil {
		return err
	}
	if err := s.Start(); err != nil {
		return err
	}
	fmt.Println("serves on", c.PublicClient.HostPort, "namespaces", strings.Join(args[2:], " "))
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	<-stop
	return s.Stop()
}

// settings are those of one process with four services, the frontend at port and the others after it.
func settings(database string, port int) *config.Config {
	service := func(offset int) config.Service {
		return config.Service{RPC: config.RPC{GRPCPort: port + offset, MembershipPort: port + 10 + offset, BindOnLocalHost: true}}
	}
	address := fmt.Sprintf("%s:%d", host, port)
	return &config.Config{
		Global: config.Global{Metrics: &metrics.Config{}},
		Persistence: config.Persistence{
			DefaultStore: sqliteplugin.PluginName, VisibilityStore: sqliteplugin.PluginName, NumHistoryShards: shards,
			DataStores: map[string]config.DataStore{sqliteplugin.PluginName: {SQL: &config.SQL{
				PluginName: sqliteplugin.PluginName, DatabaseName: database, ConnectAttributes: map[string]string{"mode": "rwc", "journal_mode": "wal", "synchronous": "full"},
			}}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: "active", CurrentClusterName: "active",
			ClusterInformation: map[string]cluster.ClusterInformation{"active": {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address}},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Services:            map[string]config.Service{"frontend": service(0), "history": service(1), "matching": service(2), "worker": service(3)},
		Archival: config.Archival{
			History: config.HistoryArchival{State: "disabled"}, Visibility: config.VisibilityArchival{State: "disabled"},
		},
		PublicClient: config.PublicClient{HostPort: address},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History: config.HistoryArchivalNamespaceDefaults{State: "disabled"}, Visibility: config.VisibilityArchivalNamespaceDefaults{State: "disabled"},
		}},
	}
}
