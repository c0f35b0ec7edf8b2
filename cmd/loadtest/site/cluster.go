package site

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// Node is a node of a cluster. Its addresses stay when it is started again.
type Node struct {
	*Child                  // its current process
	Public, Internal string // where it listens
	name             string
	settings         []string
}

// StartCluster restarts the service as the first node of a cluster, and starts the further nodes. EndCluster returns to
// a service alone.
func (s *Site) StartCluster(ctx context.Context, nodes int) error {
	if err := s.Service.Stop(); err != nil {
		return err
	}
	folder, err := os.MkdirTemp(s.Folder, "cluster-")
	if err != nil {
		return err
	}
	for i := range nodes {
		name := "node-" + strconv.Itoa(i+1)
		issue := exec.CommandContext(ctx, s.binary, "cluster", "certs", "--dir="+folder, "--node="+name)
		if output, err := issue.CombinedOutput(); err != nil {
			return fmt.Errorf("creating the certificate of %s: %w: %s", name, err, output)
		}
		var addresses [3]string
		for at := range addresses {
			if addresses[at], err = FixedAddress(ctx); err != nil {
				return err
			}
		}
		s.Nodes = append(s.Nodes, &Node{name: name, Public: addresses[0], Internal: addresses[1], settings: []string{
			"TURNSTONE_CLUSTER_LISTEN=" + addresses[2], "TURNSTONE_FILES_DIR=" + filepath.Join(folder, "files"),
			"TURNSTONE_CLUSTER_CA_FILE=" + filepath.Join(folder, "ca.crt"),
			"TURNSTONE_CLUSTER_CERT_FILE=" + filepath.Join(folder, name+".crt"),
			"TURNSTONE_CLUSTER_KEY_FILE=" + filepath.Join(folder, name+".key"),
		}})
	}
	if err := s.moveTo(s.Nodes[0].Public, s.Nodes[0].Internal); err != nil {
		return err
	}
	for _, n := range s.Nodes {
		if err := s.StartNode(ctx, n); err != nil {
			return err
		}
	}
	return nil
}

// StartNode starts a node of the cluster, or starts it again after its process has ended.
func (s *Site) StartNode(ctx context.Context, n *Node) (err error) {
	n.Child, err = s.startNode(ctx, n.name, n.Public, n.Internal, n.settings...)
	if n == s.Nodes[0] {
		s.Service = n.Child
	}
	return err
}

// EndCluster stops all nodes and starts the service alone.
func (s *Site) EndCluster(ctx context.Context) error {
	err := s.Service.Stop()
	for _, n := range s.Nodes {
		err = errors.Join(err, n.Stop())
	}
	s.Nodes = nil
	if err != nil {
		return err
	}
	_, err = s.StartService(ctx)
	return err
}

// Kill kills a process and waits until it has ended.
func (c *Child) Kill() {
	_ = syscall.Kill(-c.PID(), syscall.SIGKILL) // it may have ended already
	<-c.Done()
}

// The ports of FixedAddress are outside the range of ephemeral ports: otherwise a client that connects while the service
// is down could connect to itself.
const (
	lowestPort  = 15_000
	highestPort = 30_000
)

// FixedAddress returns an address for a service that keeps it while it is stopped and started again.
func FixedAddress(ctx context.Context) (string, error) {
	for ctx.Err() == nil {
		address := "127.0.0.1:" + strconv.Itoa(lowestPort+rand.IntN(highestPort-lowestPort))
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err == nil {
			return address, listener.Close()
		}
	}
	return "", ctx.Err()
}
