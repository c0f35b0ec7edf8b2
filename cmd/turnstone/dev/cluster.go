package dev

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"turnstone/cmd/turnstone/balancer"
	"turnstone/cmd/turnstone/cluster"
	"turnstone/cmd/turnstone/folder"
	"turnstone/cmd/turnstone/settings"
	"turnstone/providers/embedded/process"
)

// The limits and names of `dev --nodes`.
const (
	maxNodes        = 9
	nodesFolder     = "nodes"   // the data folders of the nodes, in the data folder
	clusterFolder   = "cluster" // the certificates
	certificateDays = 825
	nodeRestart     = time.Second            // pause before a node that ended is started again
	readyPoll       = 100 * time.Millisecond // while the first nodes start
)

// nodeCluster is a cluster of several processes on this host computer: this process runs the private servers and a balancer,
// and each node is a `serve` process.
type nodeCluster struct {
	program  *Program
	config   *settings.Config
	own      *folder.Folder
	log      *zap.Logger
	nodes    []*node
	balancer *balancer.Balancer

	printing sync.Mutex // held while a line of a node is printed
	running  sync.WaitGroup
}

// node is one node of a nodeCluster.
type node struct {
	number            int
	public, internal  string // host:port
	cluster           string // host:port for the other nodes
	folder, cert, key string

	mu      sync.Mutex
	process *process.Process // guarded by mu
}

// newCluster prepares the nodes. Their addresses are derived from the internal one, except those that users do not need.
func newCluster(p *Program, config *settings.Config, own *folder.Folder, count int, log *zap.Logger) (*nodeCluster, error) {
	c := &nodeCluster{program: p, config: config, own: own, log: log.Named("cluster")}
	host, text, err := net.SplitHostPort(config.Service.InternalListen)
	if err != nil {
		return nil, fmt.Errorf("TURNSTONE_INTERNAL_LISTEN: %w", err)
	}
	first, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("TURNSTONE_INTERNAL_LISTEN: %w", err)
	}
	free, err := freeAddresses(2 * count)
	if err != nil {
		return nil, err
	}
	var behind []balancer.Node
	for i := range count {
		n := &node{
			number: i + 1, public: free[2*i], cluster: free[2*i+1], internal: net.JoinHostPort(host, strconv.Itoa(first+i)),
			folder: own.Join(filepath.Join(nodesFolder, strconv.Itoa(i+1))),
		}
		if err := c.issueCertificate(n); err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, n)
		behind = append(behind, balancer.Node{Public: n.public, Internal: n.internal})
	}
	c.balancer = balancer.New(behind, log)
	return c, nil
}

// freeAddresses returns addresses of this host computer on which nothing listens.
func freeAddresses(count int) (free []string, err error) {
	for range count {
		socket, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("finding a free port: %w", err)
		}
		defer func() { _ = socket.Close() }() // only after all were found, so that they differ
		free = append(free, socket.Addr().String())
	}
	return free, nil
}

// issueCertificate creates the certificate of a node, unless an earlier start has.
func (c *nodeCluster) issueCertificate(n *node) error {
	dir, name := c.own.Join(clusterFolder), "node-"+strconv.Itoa(n.number)
	n.cert, n.key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	if _, err := os.Stat(n.cert); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, err := cluster.Issue(cluster.Request{Folder: dir, Node: name, Days: certificateDays})
	return err
}

// environment returns the environment of a node: that of this process, with what this process has filled in.
func (c *nodeCluster) environment(n *node) (list []string) {
	all := maps.Clone(c.program.Environment)
	maps.Copy(all, map[string]string{
		"TURNSTONE_DATA_DIR": n.folder, "TURNSTONE_LISTEN": n.public, "TURNSTONE_INTERNAL_LISTEN": n.internal,
		"TURNSTONE_CONTENT_LISTEN": c.contentListen(n), "TURNSTONE_CONTENT_URL": c.config.Service.ContentURL.String(),
		"TURNSTONE_DOCS_LISTEN": c.docsListen(n),
		"TURNSTONE_BASE_URL":    c.config.Service.BaseURL.String(), "TURNSTONE_ENVIRONMENT": c.config.Service.Environment,
		"TURNSTONE_LOG_LEVEL": c.logLevel(), "TURNSTONE_DRAIN_GRACE": c.program.grace(c.config).String(),
		"TURNSTONE_CLUSTER_LISTEN": n.cluster, "TURNSTONE_CLUSTER_CA_FILE": c.own.Join(filepath.Join(clusterFolder, "ca.crt")),
		"TURNSTONE_CLUSTER_CERT_FILE": n.cert, "TURNSTONE_CLUSTER_KEY_FILE": n.key,
		"TURNSTONE_TRUSTED_PROXIES": "127.0.0.1/32", "TURNSTONE_FILES_DIR": c.config.FilesFolder(),
		"TURNSTONE_SEARCH_PROVIDERS": c.config.Web.Providers.String(),
		"DATABASE_URL":               c.config.Stores.DatabaseURL, "REDIS_URL": c.config.Stores.RedisURL,
	})
	if all["TURNSTONE_SECRET"] == "" && all["TURNSTONE_SECRET_FILE"] == "" {
		all["TURNSTONE_SECRET_FILE"] = c.own.Join(settings.GeneratedSecret)
	}
	for name, value := range all {
		list = append(list, name+"="+value)
	}
	return list
}

// contentListen returns where a node serves the sandbox origin: all nodes are on one host computer, so the first one does.
func (c *nodeCluster) contentListen(n *node) string {
	if n.number > 1 {
		return settings.Off
	}
	return c.config.Service.ContentListen
}

// docsListen returns where a node serves the documentation origin: the first one does.
func (c *nodeCluster) docsListen(n *node) string {
	if n.number > 1 {
		return settings.Off
	}
	return c.config.Service.DocsListen
}

// logLevel returns the log level of the nodes. By default they log only errors: at their start they log as warnings what
// dev is expected to be, for example that answers are scripted.
func (c *nodeCluster) logLevel() string {
	if level := c.program.Environment["TURNSTONE_LOG_LEVEL"]; level != "" {
		return level
	}
	return zapcore.ErrorLevel.String()
}

// run starts the nodes and restarts those that end, until ctx ends. Then it stops all of them and waits for their end.
// started is called once, when all nodes are ready or one of them has ended.
func (c *nodeCluster) run(ctx context.Context, started func()) {
	c.running.Go(func() { c.balancer.Run(ctx) })
	for _, n := range c.nodes {
		c.running.Go(func() { c.keep(ctx, n) })
	}
	c.awaitReady(ctx)
	if ctx.Err() == nil {
		started()
	}
	<-ctx.Done()
	c.running.Wait()
}

// awaitReady waits until the balancer has found every node ready.
func (c *nodeCluster) awaitReady(ctx context.Context) {
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for c.balancer.Ready() < len(c.nodes) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// keep runs a node until ctx ends.
func (c *nodeCluster) keep(ctx context.Context, n *node) {
	for ctx.Err() == nil {
		if err := c.runNode(ctx, n); err != nil && ctx.Err() == nil {
			c.log.Error("a node ended and is started again", zap.Int("number", n.number), zap.Error(err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(nodeRestart):
		}
	}
}

// runNode starts a node and waits for its end. When ctx ends, it stops the node, which drains first.
func (c *nodeCluster) runNode(ctx context.Context, n *node) error {
	binary, err := os.Executable()
	if err != nil {
		return err
	}
	command := exec.Command(binary, "serve")
	command.Env = c.environment(n)
	// Ctrl-C reaches the whole process group. The nodes are stopped by this process instead.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	output, writer := io.Pipe()
	command.Stdout, command.Stderr = writer, writer
	command.WaitDelay = time.Second
	c.running.Go(func() { c.print(n, output) })
	defer func() { _ = writer.Close() }()
	child, err := process.Start(command)
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.process = child
	n.mu.Unlock()
	select {
	case <-child.Done():
		return fmt.Errorf("process %d: %w", child.PID(), child.Err())
	case <-ctx.Done():
		grace := c.program.grace(c.config) + settings.StopTimeout
		return child.Stop(context.WithoutCancel(ctx), process.Step{Signal: syscall.SIGTERM, Grace: grace})
	}
}

// print copies the output of a node, with its number before each line.
func (c *nodeCluster) print(n *node, from io.Reader) {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			c.printing.Lock()
			fmt.Fprintf(c.program.Stderr, "node %d  %s", n.number, line)
			c.printing.Unlock()
		}
		if err != nil {
			return
		}
	}
}

// pid returns the process id of a node; 0 while it does not run.
func (n *node) pid() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.process == nil || n.process.Exited() {
		return 0
	}
	return n.process.PID()
}

// welcome prints the nodes.
func (c *nodeCluster) welcome() {
	fmt.Fprintln(c.program.Stdout, "\n  nodes        behind one balancer at the address above")
	for _, n := range c.nodes {
		fmt.Fprintf(c.program.Stdout, "    %d          process %d, http://%s (/ready, /metrics); TURNSTONE_INTERNAL_LISTEN for the operator's commands\n",
			n.number, n.pid(), n.internal)
	}
	fmt.Fprintln(c.program.Stdout, "\nKill one of these processes (kill -9): its turns continue on the others, and it is started again.")
}
