package kafkatest

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// cable joins the network of the test and one behind it: a pair of virtual interfaces, with an
// address of link-local ones each. Nothing of it is left when the process is gone that holds the
// network behind.
type cable struct {
	held *exec.Cmd
	name string // of the near end
	far  string // address
}

// Partition is how a broker is parted from the test.
type Partition int

const (
	// Lost loses packets, both ways, without notice.
	Lost Partition = iota
	// Unreachable does the same, but the sender learns that there is no way.
	Unreachable
)

const farName = "far"

// lay makes a network and a cable to it.
func lay(t testing.TB) (*cable, error) {
	c := &cable{name: fmt.Sprintf("kt%x", rand.Uint32()), held: exec.Command("sleep", "infinity")}
	c.held.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := c.held.Start(); err != nil {
		return nil, fmt.Errorf("make a network: %w; it needs root, or unshare --map-root-user --net", err)
	}
	t.Cleanup(func() {
		_ = c.held.Process.Kill() // It ends in no other way.
		_ = c.held.Wait()
	})
	// Of four addresses two are those of hosts.
	net := fmt.Sprintf("169.254.%d.", 16+rand.IntN(200))
	first := 4 * (1 + rand.IntN(60))
	near := net + strconv.Itoa(first+1)
	c.far = net + strconv.Itoa(first+2)
	pid := strconv.Itoa(c.held.Process.Pid)
	for _, args := range [][]string{
		{"ip", "link", "add", c.name, "type", "veth", "peer", "name", farName, "netns", pid},
		{"ip", "address", "add", near + "/30", "dev", c.name},
		{"ip", "link", "set", c.name, "up"},
		c.beyond([]string{"ip", "address", "add", c.far + "/30", "dev", farName}),
		c.beyond([]string{"ip", "link", "set", farName, "up"}),
		c.beyond([]string{"ip", "link", "set", "lo", "up"}),
	} {
		if err := command(args); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func command(args []string) error {
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}

// beyond is a command in the network behind.
func (c *cable) beyond(args []string) []string {
	return append([]string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", c.held.Process.Pid), "--"}, args...)
}

// Cut parts a broker that was started apart from the test, until [Broker.Join].
func (b *Broker) Cut(how Partition) {
	b.t.Helper()
	switch how {
	case Lost:
		b.ip(b.cable.beyond([]string{"ip", "link", "set", farName, "down"}))
	case Unreachable:
		b.ip([]string{"ip", "link", "set", b.cable.name, "down"})
	default:
		b.t.Fatalf("cut Kafka off: %d is no partition", how)
	}
}

// Join ends what Cut began. Connections that are open go on.
func (b *Broker) Join() {
	b.t.Helper()
	b.ip([]string{"ip", "link", "set", b.cable.name, "up"})
	b.ip(b.cable.beyond([]string{"ip", "link", "set", farName, "up"}))
}

func (b *Broker) ip(args []string) {
	b.t.Helper()
	if err := command(args); err != nil {
		b.t.Fatalf("cut Kafka off: %v", err)
	}
}
