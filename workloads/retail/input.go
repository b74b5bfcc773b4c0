package retail

import (
	"bytes"
	_ "embed" // the sample
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/heddle-stream/heddle/program"
)

//go:embed sample_lines.csv.gz
var sample []byte

var columns = []string{"invoice", "ts", "stock_code", "qty", "unit_price", "customer"}

// Bounds of what a line may say, far above what shops sell: sums of cents and
// pieces stay within 64 bits for any file.
const (
	maxQty   = 1_000_000
	maxCents = 100_000_000
)

// reader reads invoices: consecutive lines of one number.
type reader struct {
	rows  *program.Rows
	began bool // rows hold the first line of the next invoice
	codes map[string]string
	// rounded counts prices that are no whole cents.
	rounded int
}

// open opens the file, or the sample for "".
func open(path string) (*reader, error) {
	rows, err := openRows(path)
	return &reader{rows: rows, codes: map[string]string{}}, err
}

func openRows(path string) (*program.Rows, error) {
	if path != "" {
		return program.OpenRows(path, columns...)
	}
	const name = "sample_lines.csv.gz"
	r, err := program.Decompress(io.NopCloser(bytes.NewReader(sample)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return program.NewRows(name, r, columns...)
}

// next returns the next invoice, or io.EOF.
func (r *reader) next() (Invoice, error) {
	if !r.began && !r.advance() {
		return Invoice{}, r.end()
	}
	v := Invoice{Number: strings.Clone(r.rows.Text(0)), Time: r.rows.Int(1, 0, math.MaxInt64), Customer: r.customer()}
	if v.Number == "" {
		return v, r.rows.Fail(0, "no invoice number")
	}
	for {
		v.Lines = append(v.Lines, r.line(&v))
		if !r.advance() || r.rows.Text(0) != v.Number {
			return v, r.rows.Err()
		}
		if r.customer() != v.Customer {
			return v, r.rows.Fail(5, fmt.Sprintf("customer %.20q: the lines of an invoice have the same one", r.rows.Text(5)))
		}
	}
}

// advance goes to the next line.
func (r *reader) advance() bool {
	r.began = r.rows.Next()
	return r.began
}

func (r *reader) end() error {
	if err := r.rows.Err(); err != nil {
		return err
	}
	return io.EOF
}

// customer returns the line's customer, 0 for a sale to nobody known.
func (r *reader) customer() uint32 {
	if r.rows.Text(5) == "" {
		return 0
	}
	return uint32(r.rows.Int(5, 1, math.MaxUint32))
}

// code returns the line's stock code, one string for all lines that have it.
func (r *reader) code() string {
	text := r.rows.Text(2)
	code, ok := r.codes[text]
	if !ok {
		code = strings.Clone(text)
		r.codes[code] = code
	}
	return code
}

func (r *reader) line(v *Invoice) Line {
	l := Line{Code: r.code(), Qty: r.rows.Int(3, -maxQty, maxQty)}
	_ = r.rows.Int(1, 0, math.MaxInt64) // of the first line only it counts
	cancelled := strings.HasPrefix(v.Number, "C")
	switch {
	case l.Code == "":
		_ = r.rows.Fail(2, "no stock code")
	case l.Qty == 0:
		_ = r.rows.Fail(3, "qty 0: a line is of some pieces")
	case l.Qty > 0 && cancelled:
		_ = r.rows.Fail(3, fmt.Sprintf("qty %d: a cancellation returns pieces, which is negative", l.Qty))
	}
	text := r.rows.Text(4)
	cents, whole, ok := parseCents(text)
	if !ok || cents < -maxCents || cents > maxCents {
		_ = r.rows.Fail(4, fmt.Sprintf("unit_price %.40q: a decimal number from -%d to %d is allowed", text, maxCents/100, maxCents/100))
	}
	if !whole {
		r.rounded++
	}
	l.Cents = cents
	return l
}

// parseCents reads a decimal number as cents, rounding halves away from zero,
// and tells whether it was whole cents. There is no exponent, and a point has
// digits on both sides.
func parseCents(s string) (cents int64, whole, ok bool) {
	digits, negative := strings.CutPrefix(s, "-")
	units, fraction, point := strings.Cut(digits, ".")
	if units == "" || point && fraction == "" || len(units) > 12 {
		return 0, false, false
	}
	for _, c := range []byte(units + fraction) {
		if c < '0' || c > '9' {
			return 0, false, false
		}
	}
	rest := strings.TrimRight(fraction, "0")
	for _, c := range []byte(units + (fraction + "00")[:2]) {
		cents = cents*10 + int64(c-'0')
	}
	if len(rest) > 2 && rest[2] >= '5' {
		cents++
	}
	if negative {
		cents = -cents
	}
	return cents, len(rest) <= 2, true
}
