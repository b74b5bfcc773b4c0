package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/heddle-stream/heddle/cli"
	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/engine"
	"github.com/heddle-stream/heddle/program"
	"github.com/heddle-stream/heddle/reconfig"
	"github.com/heddle-stream/heddle/storage/vfs"
	"github.com/heddle-stream/heddle/txn"
)

// Processes are nodes as worker processes.
type Processes struct{}

// tokenVariable is where a worker finds what the server wants to know of who connects.
const tokenVariable = "HEDDLE_NATS_TOKEN"

// graceMax is how long workers that should end may take before they are told more strongly.
const graceMax = 2 * time.Second

// startMax is how long a worker may take to ask what it is to run.
const startMax = 30 * time.Second

// task is what a worker is told: what to run, and as which node.
type task struct {
	Worker  cli.Worker      `json:"worker"`
	Node    reconfig.Node   `json:"node"`
	Version uint64          `json:"version"` // of the owners
	Owners  []reconfig.Node `json:"owners"`
}

// runtime starts worker processes.
type runtime struct {
	*bus
	box    *cluster.Mailbox
	server *server.Server
	url    string
	token  string
	worker cli.Worker
	keep   *keep // nil: nothing is kept
	conn   *nats.Conn
	lock   io.Closer // of the state
	yield  func()    // gives the lease back
	tasks  sync.Map  // by number of the node: the task in JSON
	all    sync.WaitGroup
	mu     sync.Mutex
	procs  []*exec.Cmd
	over   bool // nobody has to be told of anybody's end
}

// Control implements [cli.Processes].
func (Processes) Control(ctx context.Context, w cli.Worker) (n cli.Nodes, err error) {
	r := &runtime{box: cluster.NewMailbox(), url: w.NATS, token: os.Getenv(tokenVariable), worker: w, yield: func() {}}
	defer func() {
		if err != nil {
			r.release()
		}
	}()
	if r.url == "" {
		if err := r.serve(); err != nil {
			return n, err
		}
	}
	if err := r.connect(); err != nil {
		return n, err
	}
	n.Runtime, n.Box = r, r.box
	if w.State != "" {
		if err := r.keeps(ctx); err != nil {
			return n, fmt.Errorf("state %s: %w", w.State, err)
		}
		n.Keep = r.keep
	}
	return n, nil
}

// connect begins a job of which nobody has heard: what others still send goes nowhere.
func (r *runtime) connect() (err error) {
	fail := func(err error) { r.fail(cluster.Control, err) }
	if r.bus, err = connect(r.url, r.token, nuid.Next(), cluster.Control, 0, fail); err != nil {
		return err
	}
	if _, err = r.bus.conn.Subscribe(subject(r.job, cluster.Control)+".task.*", r.tell); err != nil {
		return err
	}
	return r.receive(r.box, fail)
}

// jobName is the name of what a state keeps on a server.
func jobName(state string) string {
	name := []byte(filepath.Base(state))
	for i, c := range name {
		if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z') {
			name[i] = '_'
		}
	}
	return string(name)
}

// keeps finds what the job keeps: in the directory of our own server, or under its name on another one.
func (r *runtime) keeps(ctx context.Context) (err error) {
	if r.conn, err = nats.Connect(r.url, nats.Token(r.token), nats.Name("heddle state")); err != nil {
		return err
	}
	w := r.worker
	identity := map[string]any{"workload": w.Program, "params": w.Params, "events": w.Events, "seed": w.Seed, "input": w.Input}
	if r.keep, err = open(r.conn, jobName(w.State), identity); err != nil || r.server != nil {
		return err
	}
	ctx, r.yield = context.WithCancel(context.WithoutCancel(ctx))
	return r.keep.acquire(ctx, func(err error) { r.fail(cluster.Control, err) })
}

// serve starts a server on the loopback that only our workers may use. It keeps a state in its directory, with every
// message synced before it is acknowledged.
func (r *runtime) serve() (err error) {
	r.token = nuid.Next() + nuid.Next()
	o := &server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, Authorization: r.token, NoLog: true, NoSigs: true, MaxPending: 1 << 30, MaxControlLine: 4096,
	}
	if dir := r.worker.State; dir != "" {
		o.JetStream, o.StoreDir, o.SyncAlways = true, filepath.Join(dir, "nats"), true
		if err := os.MkdirAll(o.StoreDir, 0o755); err != nil {
			return err
		}
		if r.lock, err = (vfs.Disk{}).Lock(filepath.Join(dir, "lock")); err != nil {
			return fmt.Errorf("state %s: %w", dir, err)
		}
	}
	s, err := server.NewServer(o)
	if err != nil {
		return fmt.Errorf("NATS server: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return errors.New("the NATS server does not accept connections on the loopback")
	}
	r.server, r.url = s, s.ClientURL()
	return nil
}

// tell answers a worker that asks what it is to run.
func (r *runtime) tell(msg *nats.Msg) {
	node, err := strconv.Atoi(msg.Subject[strings.LastIndexByte(msg.Subject, '.')+1:])
	if text, ok := r.tasks.Load(node); err == nil && ok {
		_ = msg.Respond(text.([]byte)) // a worker without an answer ends, and that is seen
	}
}

// fail tells control that a node, or its connection, is at its end before its time.
func (r *runtime) fail(n reconfig.Node, err error) {
	r.mu.Lock()
	over := r.over
	r.mu.Unlock()
	if err != nil && !over {
		r.box.Put(&cluster.Progress{From: n, Err: err})
	}
}

// Start implements [cluster.Runtime].
func (r *runtime) Start(o cluster.Options) error {
	t := task{Worker: r.worker, Node: o.Node, Version: o.Owners.Version()}
	for g := range o.Owners.Groups() {
		t.Owners = append(t.Owners, o.Owners.Of(reconfig.Group(g)))
	}
	text, err := json.Marshal(t)
	if err != nil {
		return err
	}
	r.tasks.Store(int(o.Node), text)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, "worker", "--nats", r.url, "--job", r.job, "--node", strconv.Itoa(int(o.Node)))
	c.Env = append(os.Environ(), tokenVariable+"="+r.token)
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt of the terminal is for control
	if err := c.Start(); err != nil {
		return err
	}
	r.mu.Lock()
	r.procs = append(r.procs, c)
	r.mu.Unlock()
	r.all.Add(1)
	go func() {
		defer r.all.Done()
		if err := c.Wait(); err != nil {
			r.fail(o.Node, fmt.Errorf("worker process %d: %w", c.Process.Pid, err))
		}
	}()
	return nil
}

// Reset implements [cluster.Runtime].
func (r *runtime) Reset() error {
	r.mu.Lock()
	r.over = true
	for _, c := range r.procs {
		_ = c.Process.Kill() // most may be gone
	}
	r.mu.Unlock()
	r.all.Wait()
	err := r.bus.close()
	r.tasks.Clear()
	_, _ = r.box.Take(nil)
	r.mu.Lock()
	r.procs, r.over = nil, false
	r.mu.Unlock()
	return errors.Join(err, r.connect())
}

// release gives back what a job has but for its processes.
func (r *runtime) release() {
	r.yield()
	if r.conn != nil {
		r.conn.Close()
	}
	if r.server != nil {
		r.server.Shutdown()
		r.server.WaitForShutdown()
	}
	if r.lock != nil {
		_ = r.lock.Close() // the end of the process gives it back, too
	}
}

// Close implements [cluster.Runtime]. Workers that do not end by themselves are told to, and killed.
func (r *runtime) Close() error {
	ended := make(chan struct{})
	go func() {
		r.all.Wait()
		close(ended)
	}()
	r.mu.Lock()
	r.over = true
	procs := r.procs
	r.mu.Unlock()
	r.tasks.Range(func(node, _ any) bool { // most have come to their end, and nobody hears it
		_ = r.Send(reconfig.Node(node.(int)), &cluster.Finish{}) // signals come next
		return true
	})
	_ = r.bus.conn.Flush()
	for _, s := range []os.Signal{nil, syscall.SIGTERM, syscall.SIGKILL} {
		for _, c := range procs {
			if s != nil {
				_ = c.Process.Signal(s) // most are gone
			}
		}
		select {
		case <-ended:
		case <-time.After(graceMax):
			continue
		}
		break
	}
	<-ended
	err := r.bus.close()
	r.release()
	return err
}

// Serve implements [cli.Processes].
func (Processes) Serve(ctx context.Context, a cli.WorkerArgs, programs []program.Program) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	box, node := cluster.NewMailbox(), reconfig.Node(a.Node)
	b, err := connect(a.NATS, os.Getenv(tokenVariable), a.Job, node, 0, func(err error) { cancel(err) })
	if err != nil {
		return err
	}
	if err := b.receive(box, func(err error) { cancel(err) }); err != nil {
		return err
	}
	answer, err := b.conn.Request(fmt.Sprintf("%s.task.%d", subject(a.Job, cluster.Control), a.Node), nil, startMax)
	if err != nil {
		return fmt.Errorf("asking control of job %s: %w", a.Job, err)
	}
	var t task
	if err := json.Unmarshal(answer.Data, &t); err != nil {
		return err
	}
	if t.Worker.LinkRate > 0 {
		_ = b.link.Close() // nothing was sent yet
		b.link = cluster.NewLink(t.Worker.LinkRate, func(to reconfig.Node, m cluster.Message) error { return b.publish(to, m, true) })
	}
	if t.Worker.State != "" {
		if err := b.keepsAs(jobName(t.Worker.State)); err != nil {
			return err
		}
	}
	owners, err := reconfig.OwnersOf(t.Version, t.Owners)
	if err != nil {
		return err
	}
	o := cluster.Options{Node: node, Owners: owners, Engine: engine.Options{Workers: t.Worker.Workers, Strategy: t.Worker.Strategy}}
	err = cluster.Host(ctx, func() (*txn.App, error) { return t.Worker.App(programs) }, o, b, box)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return errors.Join(err, b.close())
}
