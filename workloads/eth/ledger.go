package eth

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"

	"github.com/heddle-stream/heddle/internal/u256"
)

// Address names an account.
type Address [20]byte

// String returns the address as 0x and hexadecimal digits.
func (a Address) String() string { return "0x" + hex.EncodeToString(a[:]) }

var errAddress = errors.New("not an address: 0x and 40 lower-case hexadecimal digits are allowed")

// parseAddress reads an address. There is one text for each.
func parseAddress(s string) (a Address, err error) {
	if len(s) != 2+2*len(a) || s[:2] != "0x" {
		return a, errAddress
	}
	for _, c := range []byte(s[2:]) {
		if c >= 'A' && c <= 'F' {
			return a, errAddress
		}
	}
	if _, err := hex.Decode(a[:], []byte(s[2:])); err != nil {
		return a, errAddress
	}
	return a, nil
}

// created returns the address of the contract that a transaction creates. On
// the chain it is another function of the same two.
func created(sender Address, nonce uint64) (a Address) {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(append([]byte("create"), sender[:]...), nonce))
	copy(a[:], sum[len(sum)-len(a):])
	return a
}

// fault is why a change of a row is refused.
type fault uint8

const (
	none fault = iota
	wrongNonce
	poor
	noTokens
	overflow
	faults
)

var faultTexts = [faults]string{wrongNonce: "wrong nonce", poor: "insufficient funds", noTokens: "insufficient tokens", overflow: "balance overflow"}

// Account is the state of an account.
type Account struct {
	Balance  u256.Int
	Replaced u256.Int // the balance before it was last set
	// The last transaction that the account sent, if it sent one.
	Sent         bool
	Block, Nonce uint64
}

// set makes the balance what it is at the start of a block.
func (a *Account) set(balance u256.Int) { a.Replaced, a.Balance = a.Balance, balance }

// spend takes the cost of a transaction. Within a block, nonces rise by one; the
// blocks are not consecutive, so that from one to the next they may skip.
func (a *Account) spend(block, nonce uint64, value, fee u256.Int) fault {
	if a.Sent && (nonce <= a.Nonce || a.Block == block && nonce != a.Nonce+1) {
		return wrongNonce
	}
	cost, over := value.Add(fee)
	rest, under := a.Balance.Sub(cost)
	if over || under {
		return poor
	}
	a.Balance, a.Sent, a.Block, a.Nonce = rest, true, block, nonce
	return none
}

// add adds to a balance.
func add(balance *u256.Int, amount u256.Int) fault {
	sum, over := balance.Add(amount)
	if over {
		return overflow
	}
	*balance = sum
	return none
}

// Holding names an account's tokens of one kind.
type Holding struct{ Token, Holder Address }

// Tokens is the state of a holding.
type Tokens struct {
	Balance u256.Int
	Granted u256.Int // what it was given out of nothing
	Spent   bool     // it was debited before
}

// take debits tokens. No one knows what a holding held before the first block,
// so that its first debit is granted what is missing.
func (h *Tokens) take(amount u256.Int) fault {
	rest, under := h.Balance.Sub(amount)
	switch {
	case under && h.Spent:
		return noTokens
	case under:
		missing, _ := amount.Sub(h.Balance)
		h.Granted, rest = missing, u256.Int{}
	}
	h.Balance, h.Spent = rest, true
	return none
}

// Lane names an account that gathers fees of a block.
type Lane struct {
	Block  uint64
	Number uint32
}
