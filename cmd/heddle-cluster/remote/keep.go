package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/heddle-stream/heddle/cluster"
	"github.com/heddle-stream/heddle/reconfig"
)

// keep is a [cluster.Keep] on JetStream: a stream for the log, one for the pieces of checkpoints, with a subject
// for each part, and a bucket of entries under compare-and-set for the term, the newest checkpoint, which has
// the table of owners, and the lease of who controls the job.
//
// Somebody else who controlled the job, and does not know yet that he no longer does, can do no harm: the term, the checkpoint and
// the end of the log are others than those that he writes behind.
type keep struct {
	name     string
	kv       jetstream.KeyValue
	js       jetstream.JetStream
	log      jetstream.Stream
	rows     jetstream.Stream
	term     uint64
	revision uint64 // of the entry of the checkpoint
	last     uint64 // message of the log
	first    []begun
	waits    []jetstream.PubAckFuture
	holds    lease
	held     uint64 // revision of the lease
}

// begun is the first message of a record of the log.
type begun struct{ index, message uint64 }

// lease tells who controls a job, and until when, unless it is renewed.
type lease struct {
	Who   string    `json:"who"`
	Until time.Time `json:"until"`
}

const (
	answerMax  = 10 * time.Second // of the server
	leaseFor   = 5 * time.Second
	leaseRenew = time.Second
	fence      = reconfig.Node(-3) // who sends what divides the terms of a log
)

// errTaken tells that somebody else controls the job.
var errTaken = errors.New("another process has taken over the job")

func logSubject(name string) string { return "heddle." + name + ".log" }

func rowsSubject(name string, part uint64) string {
	return fmt.Sprintf("heddle.%s.rows.%d", name, part)
}

// open finds or makes what a job of a name keeps on a server, and refuses that of another job.
func open(conn *nats.Conn, name string, identity any) (*keep, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerMax)
	defer cancel()
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(1<<20))
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname()
	k := &keep{name: name, js: js, holds: lease{Who: fmt.Sprintf("process %d on %s", os.Getpid(), host)}}
	k.log, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "HEDDLE_" + name + "_LOG", Subjects: []string{logSubject(name)}})
	if err == nil {
		k.rows, err = js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "HEDDLE_" + name + "_ROWS", Subjects: []string{"heddle." + name + ".rows.*"}})
	}
	if err == nil {
		k.kv, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: "HEDDLE_" + name})
	}
	if err != nil {
		return nil, fmt.Errorf("JetStream of the NATS server: %w", err)
	}
	text, err := json.Marshal(identity)
	if err != nil {
		return nil, err
	}
	if _, err := k.kv.Create(ctx, "identity", text); err == nil {
		return k, nil
	}
	had, err := k.kv.Get(ctx, "identity")
	if err == nil && string(had.Value()) != string(text) {
		err = fmt.Errorf("the state is that of another job: %s, and this one is %s", had.Value(), text)
	}
	return k, err
}

// acquire takes the lease of the job, unless somebody else has it, and renews it until the context is cancelled. Lost
// is called when that fails.
func (k *keep) acquire(ctx context.Context, lost func(error)) error {
	had, err := k.kv.Get(ctx, "lease")
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
	case err != nil:
		return err
	default:
		var l lease
		if err := json.Unmarshal(had.Value(), &l); err != nil {
			return err
		}
		if time.Now().Before(l.Until) {
			return fmt.Errorf("the job is controlled by %s until %s, unless it goes on", l.Who, l.Until.Format(time.TimeOnly))
		}
		k.held = had.Revision()
	}
	if err := k.renew(ctx); err != nil {
		return err
	}
	go func() {
		tick := time.NewTicker(leaseRenew)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				k.holds.Until = time.Now()
				_ = k.renewOnce(context.Background()) // nobody has to wait for it then
				return
			case <-tick.C:
				if err := k.renew(ctx); err != nil && ctx.Err() == nil {
					lost(fmt.Errorf("lease of the job: %w", err))
					return
				}
			}
		}
	}()
	return nil
}

func (k *keep) renew(ctx context.Context) error {
	k.holds.Until = time.Now().Add(leaseFor)
	return k.renewOnce(ctx)
}

func (k *keep) renewOnce(ctx context.Context) error {
	text, err := json.Marshal(k.holds)
	if err == nil {
		k.held, err = k.set(ctx, "lease", text, k.held)
	}
	return err
}

// set changes an entry that has a revision, or makes one of revision 0.
func (k *keep) set(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, answerMax)
	defer cancel()
	next, err := uint64(0), error(nil)
	if revision == 0 {
		next, err = k.kv.Create(ctx, key, value)
	} else {
		next, err = k.kv.Update(ctx, key, value, revision)
	}
	if errors.Is(err, jetstream.ErrKeyExists) {
		err = errTaken
	}
	return next, told(err)
}

// noRoom is the server's code for a stream that it cannot write.
const noRoom = 10023

// told says what an answer of the server means for the job.
func told(err error) error {
	var answer *jetstream.APIError
	switch {
	case !errors.As(err, &answer):
		return err
	case answer.ErrorCode == jetstream.JSErrCodeStreamWrongLastSequence:
		return errTaken
	case answer.ErrorCode == noRoom:
		return fmt.Errorf("there is no room for the state, or it cannot be written; what was logged before is safe, and the same command goes on when there is: %w", err)
	}
	return err
}

// Begin implements [cluster.Keep].
func (k *keep) Begin() (uint64, *cluster.Checkpoint, error) {
	ctx, cancel := context.WithTimeout(context.Background(), answerMax)
	defer cancel()
	k.waits = nil
	term, revision, err := k.entry(ctx, "term")
	if err != nil {
		return 0, nil, err
	}
	k.term = 1
	if revision > 0 {
		if k.term, err = strconv.ParseUint(string(term), 10, 64); err != nil {
			return 0, nil, err
		}
		k.term++
	}
	if _, err := k.set(ctx, "term", strconv.AppendUint(nil, k.term, 10), revision); err != nil {
		return 0, nil, err
	}
	text, revision, err := k.entry(ctx, "checkpoint")
	if err != nil {
		return 0, nil, err
	}
	var c *cluster.Checkpoint
	if k.revision = revision; revision > 0 {
		if err := json.Unmarshal(text, &c); err != nil {
			return 0, nil, fmt.Errorf("checkpoint: %w", err)
		}
		if k.revision, err = k.set(ctx, "checkpoint", text, revision); err != nil { // nobody else commits one
			return 0, nil, err
		}
	}
	info, err := k.log.Info(ctx)
	if err != nil {
		return 0, nil, err
	}
	k.last = info.State.LastSeq
	ack, err := k.js.Publish(ctx, logSubject(k.name), appendFrame(nil, way{from: fence}, k.term, true, nil), jetstream.WithExpectLastSequence(k.last))
	if err != nil {
		return 0, nil, fmt.Errorf("log: %w", told(err))
	}
	k.last = ack.Sequence
	return k.term, c, k.tidy(ctx, c)
}

// entry returns an entry, with revision 0 if there is none.
func (k *keep) entry(ctx context.Context, key string) (value []byte, revision uint64, err error) {
	e, err := k.kv.Get(ctx, key)
	if errors.Is(err, jetstream.ErrKeyNotFound) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	return e.Value(), e.Revision(), nil
}

// Log implements [cluster.Keep].
func (k *keep) Log(index uint64, record []byte) error {
	k.first = append(k.first, begun{index, k.last + 1})
	for {
		part := record[:min(len(record), frameMax)]
		record = record[len(part):]
		f, err := k.js.PublishAsync(logSubject(k.name), appendFrame(nil, way{from: cluster.Control}, index, len(record) == 0, part), jetstream.WithExpectLastSequence(k.last))
		if err != nil {
			return fmt.Errorf("log: %w", err)
		}
		k.last++
		k.waits = append(k.waits, f)
		if len(record) == 0 {
			return nil
		}
	}
}

// Sync implements [cluster.Keep].
func (k *keep) Sync() error {
	timeout := time.NewTimer(answerMax)
	defer timeout.Stop()
	for _, f := range k.waits {
		select {
		case <-f.Ok():
		case err := <-f.Err():
			return fmt.Errorf("log: %w", told(err))
		case <-timeout.C:
			return errors.New("log: the NATS server does not answer")
		}
	}
	k.waits = k.waits[:0]
	return nil
}

// Records implements [cluster.Keep].
func (k *keep) Records(from uint64, yield func(record []byte) error) error {
	ctx := context.Background()
	info, err := k.log.Info(ctx)
	if err != nil {
		return err
	}
	k.first = k.first[:0]
	var record []byte
	for seq := info.State.FirstSeq; seq <= k.last; seq++ {
		msg, err := k.log.GetMsg(ctx, seq)
		if err != nil {
			return fmt.Errorf("message %d of the log: %w", seq, err)
		}
		w, index, last, part, err := parseFrame(msg.Data)
		if err != nil {
			return fmt.Errorf("message %d of the log: %w", seq, err)
		}
		if w.from == fence { // what was begun before it has no end
			record = nil
			continue
		}
		if record == nil {
			k.first = append(k.first, begun{index, seq})
		}
		if record = append(record, part...); !last {
			continue
		}
		if index >= from {
			if err := yield(record); err != nil {
				return err
			}
		}
		record = nil
	}
	return nil
}

// Store implements [cluster.Keep] for nodes in the process that controls the job. Others store over their own connection.
func (k *keep) Store(*cluster.Piece, func(error)) { panic("worker processes store pieces themselves") }

// store publishes a piece, and calls stored when it is safe or why it is not.
func store(js jetstream.JetStream, name string, number uint64, p *cluster.Piece, stored func(error)) (next uint64, err error) {
	src := cluster.AppendMessage(nil, p)
	var waits []jetstream.PubAckFuture
	for done := false; !done; {
		part := src[:min(len(src), frameMax)]
		src = src[len(part):]
		done = len(src) == 0
		f, err := js.PublishAsync(rowsSubject(name, p.Part), appendFrame(nil, way{from: p.From}, number, done, part))
		if err != nil {
			return number, err
		}
		number++
		waits = append(waits, f)
	}
	go func() {
		for _, f := range waits {
			select {
			case <-f.Ok():
			case err := <-f.Err():
				stored(told(err))
				return
			}
		}
		stored(nil)
	}()
	return number, nil
}

// Pieces implements [cluster.Keep].
func (k *keep) Pieces(part uint64, yield func(p *cluster.Piece) error) error {
	var frames assembler
	for seq := uint64(1); ; seq++ {
		msg, err := k.rows.GetMsg(context.Background(), seq, jetstream.WithGetMsgSubject(rowsSubject(k.name, part)))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		seq = msg.Sequence
		m, err := frames.take(msg.Data)
		if err != nil {
			return fmt.Errorf("part %d of the checkpoint: %w", part, err)
		}
		if p, is := m.(*cluster.Piece); is {
			if err := yield(p); err != nil {
				return err
			}
		}
	}
}

// Commit implements [cluster.Keep].
func (k *keep) Commit(c *cluster.Checkpoint) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerMax)
	defer cancel()
	if k.revision, err = k.set(ctx, "checkpoint", text, k.revision); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	upTo := k.last + 1
	if i := slices.IndexFunc(k.first, func(b begun) bool { return b.index >= c.Index }); i >= 0 {
		upTo = k.first[i].message
		k.first = slices.Delete(k.first, 0, i)
	} else {
		k.first = k.first[:0]
	}
	if err := k.log.Purge(ctx, jetstream.WithPurgeSequence(upTo)); err != nil {
		return err
	}
	return k.tidy(ctx, c)
}

// tidy drops the pieces of what is no part of the newest checkpoint.
func (k *keep) tidy(ctx context.Context, c *cluster.Checkpoint) error {
	info, err := k.rows.Info(ctx, jetstream.WithSubjectFilter("heddle."+k.name+".rows.*"))
	if err != nil {
		return err
	}
	for subject := range info.State.Subjects {
		part, err := strconv.ParseUint(subject[strings.LastIndexByte(subject, '.')+1:], 10, 64)
		if err != nil || c != nil && slices.Contains(c.Parts, part) {
			continue
		}
		if err := k.rows.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
			return err
		}
	}
	return nil
}
