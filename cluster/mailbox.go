package cluster

import "sync"

// Mailbox is a queue of messages without a bound: bounds are set by who sends, see Job and the credits of copies.
// Any goroutine may put messages in, one takes them out.
type Mailbox struct {
	mu     sync.Mutex
	queue  []Message
	closed bool
	bell   chan struct{}
}

// NewMailbox returns an empty one.
func NewMailbox() *Mailbox { return &Mailbox{bell: make(chan struct{}, 1)} }

// Put adds a message. After Close it is lost.
func (m *Mailbox) Put(msg Message) { m.put(msg) }

// put reports whether somebody will take the message.
func (m *Mailbox) put(msg Message) (open bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		m.queue = append(m.queue, msg)
		m.ring()
	}
	return !m.closed
}

// Take returns all messages, in their order, appended to dst, and whether more may come.
func (m *Mailbox) Take(dst []Message) (all []Message, open bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	dst = append(dst, m.queue...)
	clear(m.queue)
	m.queue = m.queue[:0]
	return dst, !m.closed
}

// Bell receives when there may be something to take.
func (m *Mailbox) Bell() <-chan struct{} { return m.bell }

// Close makes who waits for messages come to an end, and returns those that nobody took.
func (m *Mailbox) Close() (left []Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	left, m.queue, m.closed = m.queue, nil, true
	m.ring()
	return left
}

func (m *Mailbox) ring() {
	select {
	case m.bell <- struct{}{}:
	default:
	}
}
