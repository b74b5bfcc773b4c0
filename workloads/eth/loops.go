package eth

import (
	"errors"
	"fmt"
	"io"

	"github.com/heddle-stream/heddle/internal/u256"
	"github.com/heddle-stream/heddle/program"
)

// loops are serial programs over the same events.
func loops(c *program.Config, events int) []program.Loop {
	return []program.Loop{{Name: "go maps", Prepare: func() func() {
		list, err := readAll(c, events)
		if err != nil {
			// Read whole when the instance was made, so not what the user gave.
			panic(fmt.Sprintf("the input changed since it was opened: %v", err))
		}
		s := newState(c.Int("fees"), c.Cost("complexity"))
		return func() { s.run(list) }
	}}}
}

// readAll returns the first n events.
func readAll(c *program.Config, n int) (list []event, err error) {
	r, err := open(c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for len(list) < n {
		e, err := r.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// state is the tables, as Go maps.
type state struct {
	accounts map[Address]Account
	fees     map[Lane]u256.Int
	holdings map[Holding]Tokens
	lanes    uint32
	cost     program.Cost
}

func newState(lanes int, cost program.Cost) *state {
	return &state{map[Address]Account{}, map[Lane]u256.Int{}, map[Holding]Tokens{}, uint32(lanes), cost}
}

func (s *state) run(events []event) {
	for i := range events {
		if e := &events[i]; e.isStart {
			for _, o := range e.start.Accounts {
				s.cost.SpendTimes(1)
				acc := s.accounts[o.Account]
				acc.set(o.Balance)
				s.accounts[o.Account] = acc
			}
		} else {
			s.tx(&e.tx)
		}
	}
}

// tx works on copies of the rows and writes them when nothing is left to go
// wrong. Where two are the same row, the second change goes to the first copy.
func (s *state) tx(t *Tx) {
	s.cost.SpendTimes(1)
	sender := s.accounts[t.From]
	if sender.spend(t.Block, t.Nonce, t.Value, t.Fee()) != none {
		return
	}
	target, receiver, pays := t.To, Account{}, t.Kind == Create || !t.Value.IsZero()
	if t.Kind == Create {
		target = created(t.From, t.Nonce)
		if _, exists := s.accounts[target]; exists {
			return
		}
	}
	if pays {
		s.cost.SpendTimes(1)
		receiver = s.accounts[target]
		if target == t.From {
			receiver = sender
		}
		if add(&receiver.Balance, t.Value) != none {
			return
		}
	}
	s.cost.SpendTimes(1)
	lane := Lane{t.Block, t.Index % s.lanes}
	fees := s.fees[lane]
	if add(&fees, t.Fee()) != none || t.Kind == ERC20 && !s.tokens(t) {
		return
	}
	s.accounts[t.From] = sender
	if pays {
		s.accounts[target] = receiver
	}
	s.fees[lane] = fees
}

// tokens moves tokens, or nothing.
func (s *state) tokens(t *Tx) bool {
	s.cost.SpendTimes(1)
	from, to := Holding{t.To, t.From}, Holding{t.To, t.TokensTo}
	giver := s.holdings[from]
	if giver.take(t.Tokens) != none {
		return false
	}
	s.cost.SpendTimes(1)
	taker := s.holdings[to]
	if from == to {
		taker = giver
	}
	if add(&taker.Balance, t.Tokens) != none {
		return false
	}
	s.holdings[from] = giver
	s.holdings[to] = taker
	return true
}
