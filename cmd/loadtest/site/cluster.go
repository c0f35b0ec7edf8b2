package site

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
)

// cluster are the settings of a service with two nodes; the zero value is a service with one.
type cluster struct {
	folder    string            // of the certificates and the files
	addresses map[string]string // by node
}

// node returns the settings of a node.
func (c cluster) node(name string) []string {
	if c.folder == "" {
		return nil
	}
	return []string{
		"TURNSTONE_CLUSTER_LISTEN=" + c.addresses[name], "TURNSTONE_FILES_DIR=" + filepath.Join(c.folder, "files"),
		"TURNSTONE_CLUSTER_CA_FILE=" + filepath.Join(c.folder, "ca.crt"),
		"TURNSTONE_CLUSTER_CERT_FILE=" + filepath.Join(c.folder, name+".crt"),
		"TURNSTONE_CLUSTER_KEY_FILE=" + filepath.Join(c.folder, name+".key"),
	}
}

// StartPeer restarts the service as a node of a cluster, starts a second node, and returns the address of its API.
// StopPeer returns to a service with one node.
func (s *Site) StartPeer(ctx context.Context) (base string, err error) {
	if err := s.Service.Stop(); err != nil {
		return "", err
	}
	const peer = "peer"
	c := cluster{folder: filepath.Join(s.Folder, "cluster"), addresses: map[string]string{}}
	for _, node := range []string{"service", peer} {
		issue := exec.CommandContext(ctx, s.binary, "cluster", "certs", "--dir="+c.folder, "--node="+node)
		if output, err := issue.CombinedOutput(); err != nil {
			return "", fmt.Errorf("creating the certificate of %s: %w: %s", node, err, output)
		}
		if c.addresses[node], err = FreeAddress(ctx); err != nil {
			return "", err
		}
	}
	s.cluster = c
	if _, err := s.StartService(ctx); err != nil {
		return "", err
	}
	public, err := FreeAddress(ctx)
	if err != nil {
		return "", err
	}
	internal, err := FreeAddress(ctx)
	if err != nil {
		return "", err
	}
	s.Peer, err = s.startNode(ctx, peer, public, internal, c.node(peer)...)
	return "http://" + public, err
}

// StopPeer stops the second node and restarts the service alone.
func (s *Site) StopPeer(ctx context.Context) error {
	err := errors.Join(s.Peer.Stop(), s.Service.Stop())
	s.Peer, s.cluster = nil, cluster{}
	if err != nil {
		return err
	}
	_, err = s.StartService(ctx)
	return err
}
