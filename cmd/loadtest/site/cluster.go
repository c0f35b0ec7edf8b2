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

// Cluster is the service as several nodes on the stores of a site.
type Cluster struct {
	Nodes []*Node // the process of the first one is that of the site's Service
	site  *Site
}

// StartCluster restarts the service as the first node of a cluster, and starts the further nodes. End returns to a
// service alone.
func (s *Site) StartCluster(ctx context.Context, nodes int) (*Cluster, error) {
	if err := s.Service.Stop(); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp(s.Folder, "cluster-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{site: s}
	s.cluster = c
	for i := range nodes {
		n, err := c.newNode(ctx, folder, "node-"+strconv.Itoa(i+1))
		if err != nil {
			return nil, err
		}
		c.Nodes = append(c.Nodes, n)
	}
	if err := s.moveTo(c.Nodes[0].Public, c.Nodes[0].Internal); err != nil {
		return nil, err
	}
	for _, n := range c.Nodes {
		if err := c.Start(ctx, n); err != nil {
			return nil, errors.Join(err, c.End(context.WithoutCancel(ctx)))
		}
	}
	return c, nil
}

// newNode returns a node with a certificate and addresses of its own, which is not started.
func (c *Cluster) newNode(ctx context.Context, folder, name string) (*Node, error) {
	issue := exec.CommandContext(ctx, c.site.binary, "cluster", "certs", "--dir="+folder, "--node="+name)
	if output, err := issue.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("creating the certificate of %s: %w: %s", name, err, output)
	}
	var addresses [3]string
	for i := range addresses {
		var err error
		if addresses[i], err = FixedAddress(ctx); err != nil {
			return nil, err
		}
	}
	return &Node{name: name, Public: addresses[0], Internal: addresses[1], settings: []string{
		"TURNSTONE_CLUSTER_LISTEN=" + addresses[2], "TURNSTONE_FILES_DIR=" + filepath.Join(folder, "files"),
		"TURNSTONE_CLUSTER_CA_FILE=" + filepath.Join(folder, "ca.crt"),
		"TURNSTONE_CLUSTER_CERT_FILE=" + filepath.Join(folder, name+".crt"),
		"TURNSTONE_CLUSTER_KEY_FILE=" + filepath.Join(folder, name+".key"),
	}}, nil
}

// Start starts a node of the cluster, or starts it again after its process has ended.
func (c *Cluster) Start(ctx context.Context, n *Node) (err error) {
	n.Child, err = c.site.startNode(ctx, n.name, n.Public, n.Internal, n.settings...)
	if n == c.Nodes[0] {
		c.site.Service = n.Child
	}
	return err
}

// stop stops all nodes.
func (c *Cluster) stop() (err error) {
	if c == nil {
		return nil
	}
	for _, n := range c.Nodes {
		err = errors.Join(err, n.Stop())
	}
	return err
}

// End stops all nodes and starts the service alone.
func (c *Cluster) End(ctx context.Context) error {
	c.site.cluster = nil
	if err := errors.Join(c.site.Service.Stop(), c.stop()); err != nil {
		return err
	}
	_, err := c.site.StartService(ctx)
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
